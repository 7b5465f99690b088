"""How labeltree grows: with labels and documents, to the paper's sets, and within little memory."""
