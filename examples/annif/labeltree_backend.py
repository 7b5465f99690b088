"""labeltree as a backend of Annif. In place of the command `annif`, run

    python labeltree_backend.py train PROJECT DOCUMENTS
    python labeltree_backend.py suggest PROJECT < document.txt

and so on, with projects of `backend=labeltree`, and in these, if wanted, `preset=fast` or `preset=best`. A
model is trained on the URIs of subjects. It is a file in the project's folder, which `labeltree serve`,
`labeltree explain` and all other commands take as it is.
"""

import os.path

import annif.backend
from annif.backend.backend import AnnifBackend
from annif.exception import NotInitializedException, NotSupportedException
from annif.suggestion import SubjectSuggestion, SuggestionBatch

import labeltree


class LabeltreeBackend(AnnifBackend):
    """A model over texts as they are: it needs no analyzer and no vectorizer."""

    name = "labeltree"
    MODEL_FILE = "model.labeltree"
    _model = None

    @property
    def _path(self):
        return os.path.join(self.datadir, self.MODEL_FILE)

    def initialize(self, parallel=False):
        if self._model is None:
            if not os.path.exists(self._path):
                raise NotInitializedException(f"model {self._path} not found", backend_id=self.backend_id)
            self._model = labeltree.load(self._path)

    def _train(self, corpus, params, jobs=0):
        if corpus == "cached":
            raise NotSupportedException("labeltree keeps no training data; train on documents")
        texts, labels, subjects = [], [], self.project.subjects
        for document in corpus.documents:
            uris = [subjects[subject_id].uri for subject_id in document.subject_set]
            if uris:
                texts.append(document.text)
                labels.append(uris)
        if not texts:
            raise NotSupportedException("Cannot train labeltree project with no documents")
        self._model = labeltree.train(texts, labels, preset=params.get("preset"), threads=jobs)
        self._model.save(self._path)

    def _suggest_batch(self, documents, params):
        texts, find = [document.text for document in documents], self.project.subjects.by_uri
        rows = self._model.predict(texts, int(params["limit"]), if_unknown="nothing", rule="none")
        known = [[(find(uri), probability) for uri, probability in row] for row in rows]
        return SuggestionBatch.from_sequence(
            [[SubjectSuggestion(*pair) for pair in row if pair[0] is not None] for row in known],
            self.project.subjects,
        )


annif.backend._backend_fns["labeltree"] = lambda: LabeltreeBackend

if __name__ == "__main__":
    from annif.cli import cli

    cli()
