"""Runs one engine that explains rows in a process of its own, for `peers.py`:

explainers.py ENGINE THREADS

Commands are lines of JSON on standard input, answers are lines of JSON on standard output: load (a model), time (calls
of some rows) and answers (writes the numbers of some rows to a file).

An engine is a class below, named after it. load() reads the model, makes `explain`, which takes rows and returns the
engine's own result, and sets `version`. attributions() brings the result into one shape: (rows, outputs, features) for
contributions, (rows, outputs, features, features) for interactions. An engine that cannot take a model, or does not
have what is asked, raises Skip.
"""
import importlib.metadata as metadata
import pathlib
import resource
import sys
import warnings

import numpy

from timing import timed_often

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(BENCH), str(BENCH / "peers")]

from answering import Skip, serve  # noqa: E402

MOST_MEMORY = 8 << 30  # bytes; some engines would take all that the machine has


XGBOOST_OPTIONS = {  # the arguments with which XGBoost predicts
    "contributions": {"pred_contribs": True},
    "interactions": {"pred_interactions": True},
    "approx-contributions": {"pred_contribs": True, "approx_contribs": True},
}


class Engine:
    whole = False  # whether it gets all rows, however long they take
    approximates = False  # whether it has approximate contributions

    def __init__(self, model, kind, background, threads, **options):
        """`model` is the trainer's file, `kind` forestvm's name of the output, `background` a file of rows or None."""
        if kind == "approx-contributions" and not self.approximates:
            raise Skip("has no approximate contributions")
        self.model, self.kind, self.threads, self.options = model, kind, threads, options
        self.background = None if background is None else numpy.load(background)
        self.load()

    def attributions(self, result, count, features):
        """Turns a result whose last column, in either direction, is the expected score."""
        sides = 2 if self.kind == "interactions" else 1
        parts = numpy.asarray(result).reshape(count, -1, *[features + 1] * sides)
        return parts[..., :-1, :-1] if sides == 2 else parts[..., :-1]

    def refuse(self, *asked):
        """Raises Skip for what the engine does not have: "interactions", "background" or a suffix of model files."""
        what = [self.kind, pathlib.Path(self.model).suffix, "" if self.background is None else "background"]
        for name in asked:
            if name in what:
                raise Skip(f"does not read {name} files" if name.startswith(".") else f"has no {name}")

    def booster(self):
        """Reads the model with its trainer's package."""
        if self.model.endswith(".cbm"):
            import catboost

            return catboost.CatBoost().load_model(self.model)
        if self.model.endswith(".txt"):
            import lightgbm

            return lightgbm.Booster(model_file=self.model)
        import xgboost

        booster = xgboost.Booster({"nthread": self.threads}, model_file=self.model)
        booster.feature_names = None  # rows need no names
        return booster


class forestvm(Engine):
    """Calls the C library, with a program that peers.py has compiled."""

    whole = approximates = True

    def load(self):
        from library import Forest, Library

        runtime = Library(self.options["library"])
        self.forest = Forest(runtime, self.options["program"], self.threads, self.options["target"])
        self.version = self.forest.version()
        self.rows = None

    def explain(self, rows):
        if rows is not self.rows:
            self.rows, self.call = rows, self.forest.call(rows, self.kind)
        return self.call()


class xgboost(Engine):
    """Makes its matrix of the rows in each call."""

    approximates = True

    def load(self):
        import xgboost as module

        self.refuse("background", ".txt", ".cbm")
        self.version, booster, asked = module.__version__, self.booster(), XGBOOST_OPTIONS[self.kind]
        self.explain = lambda rows: booster.predict(module.DMatrix(rows, nthread=self.threads), **asked)


class xgboost_newest(xgboost):
    pass


class lightgbm(Engine):
    def load(self):
        import lightgbm as module

        self.refuse(".cbm", ".json", ".ubj", "background", "interactions")
        self.version, booster = module.__version__, self.booster()
        self.explain = lambda rows: booster.predict(rows, pred_contrib=True, num_threads=self.threads)


class catboost(Engine):
    def load(self):
        import catboost as module

        self.refuse(".txt", ".json", ".ubj", "background", "interactions")
        self.version, booster = module.__version__, self.booster()

        def explain(rows):
            pool = module.Pool(rows, thread_count=self.threads)
            return booster.get_feature_importance(pool, type="ShapValues", thread_count=self.threads)

        self.explain = explain


class onedal(Engine):
    """Uses daal4py's converted models."""

    def load(self):
        import daal4py
        import daal4py.mb

        self.refuse("background", ".cbm")
        self.version = metadata.version("scikit-learn-intelex")
        daal4py.daalinit(self.threads)
        model = daal4py.mb.convert_model(self.booster())
        asked = XGBOOST_OPTIONS[self.kind]
        self.explain = lambda rows: model.predict(rows, **asked)


class WithoutExpected(Engine):
    """Results have no column for the expected score; several outputs come last, or as a list."""

    def attributions(self, result, count, features):
        if isinstance(result, list):
            result = numpy.stack(result, axis=-1)
        sides = [features] * (2 if self.kind == "interactions" else 1)
        return numpy.moveaxis(numpy.asarray(result).reshape(count, *sides, -1), -1, 1)


class shap(WithoutExpected):
    """Uses TreeExplainer; with a background, feature_perturbation="interventional". Without one TreeExplainer calls the
    trainer's own code for XGBoost and LightGBM unless told otherwise, so rows are explained by shap's own extension,
    exactly as with `approximate=False` for models that have no such code."""

    def load(self):
        import shap as module

        self.refuse(".cbm")
        self.version, booster = module.__version__, self.booster()
        if self.background is None:
            explainer = module.TreeExplainer(booster, feature_perturbation="tree_path_dependent")
            explainer.model.model_type = "internal"  # otherwise the trainer's code does the work
        else:
            self.refuse("interactions")
            # An array alone would be sampled down to 100 rows.
            background = module.maskers.Independent(self.background, max_samples=len(self.background))
            explainer = module.TreeExplainer(booster, background, feature_perturbation="interventional")
        if self.kind == "interactions":
            self.explain = explainer.shap_interaction_values
        else:
            self.explain = lambda rows: explainer.shap_values(rows, check_additivity=False)


class fasttreeshap(WithoutExpected):
    """Uses the faster of its algorithms, v2, which takes memory of 2^depth a leaf, and v1 where that is too much."""

    def load(self):
        import fasttreeshap_fixed as module

        self.refuse("background", ".cbm")
        self.version = metadata.version("fasttreeshap-fixed")
        algorithm = "v1" if self.kind == "interactions" else "auto"
        explainer = module.TreeExplainer(self.booster(), algorithm=algorithm, n_jobs=self.threads, shortcut=False)
        if self.kind == "interactions":
            self.explain = explainer.shap_interaction_values
        else:
            self.explain = lambda rows: explainer.shap_values(rows, check_additivity=False)


class shapiq(Engine):
    """Uses its TreeExplainer with the code of its own for every number of rows, which explains a row at a time."""

    def load(self):
        import shapiq as module

        self.refuse(".cbm")
        if self.options["outputs"] > 1:
            raise Skip("explains one class")
        self.version = module.__version__
        order, index = (2, "SII") if self.kind == "interactions" else (1, "SV")
        given = {} if self.background is None else {"mode": "interventional", "reference_dataset": self.background}
        explainer = module.TreeExplainer(
            self.booster(), max_order=order, min_order=1, index=index, backend="shapiq", **given
        )
        self.explain = explainer.explain_X

    def attributions(self, result, count, features):
        """Pairs have the whole interaction; its halves belong to the two places of a pair. A feature's Shapley value
        less these halves is the diagonal; the index SII has values of order 1."""
        sides = 2 if self.kind == "interactions" else 1
        parts = numpy.zeros((count, 1, *[features] * sides))
        for players, values in result.values.items():
            if sides == 1:
                parts[:, 0, players[0]] = values
            elif len(players) == 1:
                parts[:, 0, players[0], players[0]] += values
            else:
                first, second = players
                for i, j in ((first, second), (second, first)):
                    parts[:, 0, i, j] = values / 2
                    parts[:, 0, i, i] -= values / 2
        return parts


class woodelf(WithoutExpected):
    """Gets all rows in one call: its work before the first row is a large part of the time."""

    whole = True

    def load(self):
        import pandas
        import woodelf as module

        self.refuse(".cbm")
        if self.options["outputs"] > 1:
            raise Skip("explains one class")
        self.version = metadata.version("woodelf_explainer")

        def table(rows):
            return pandas.DataFrame(rows, columns=[f"f{i}" for i in range(rows.shape[1])])

        background = None if self.background is None else table(self.background)
        explainer = module.WoodelfExplainer(self.booster(), background)
        explain = explainer.shap_interaction_values if self.kind == "interactions" else explainer.shap_values
        self.explain = lambda rows: explain(table(rows), verbose=False)


class Session:
    """One engine with one model. Rows are read once, and converted to what engines take by the engines themselves."""

    def __init__(self, name, threads):
        self.name, self.threads, self.engine = name, threads, None

    def load(self, rows, **given):
        self.engine = None
        self.engine = globals()[self.name](threads=self.threads, **given)
        self.rows = numpy.load(rows)
        return {"version": self.engine.version, "whole": self.engine.whole}

    def time(self, count):
        """Returns the seconds of the processor that a call of `count` rows takes."""
        rows = numpy.ascontiguousarray(self.rows[:count])
        return {"seconds": timed_often(lambda: self.engine.explain(rows))[0]}

    def answers(self, count, file):
        """Writes the attributions of the first rows."""
        rows = numpy.ascontiguousarray(self.rows[:count])
        numpy.save(file, self.engine.attributions(self.engine.explain(rows), count, rows.shape[1]))
        return {}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    serve(Session(sys.argv[1], int(sys.argv[2])))
