"""Coverage-guided fuzzing of everything that reads what others wrote: model files, data, trees, configs.

    pip install -e ".[fuzz]"                          # atheris; it comes for Linux and macOS
    python -m fuzz all --runs 2000                    # every target, one after another: about a minute
    python -m fuzz jsonl --runs 100000 --seed 7       # one target, longer
    python -m fuzz jsonl fuzz-crash-0123abcd          # once more what was found

The same seed makes the same inputs. What a run starts from is made by the code itself, so there are no files
of inputs here. An execution passes if it ends in an answer that makes sense (finite, a row for each row, the
same rows however the file is cut into blocks) or in a named error of :mod:`labeltree.errors`. Everything else
ends the run with a traceback and a file ``fuzz-crash-...``, too long a time with ``fuzz-timeout-...``. What
was found becomes a test of the suite.

Readers run their kernels as plain Python, so that the fuzzer sees which lines an input reaches, and so that a
read outside of an array is an error; ``--compiled`` takes the machine code. The search of a model cannot run
as Python: the target ``model`` takes the machine code, with ``--bounds-check`` one that checks every access
(which is compiled first).
"""
