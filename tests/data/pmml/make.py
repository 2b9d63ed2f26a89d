"""Makes the PMML models of this folder and JPMML-Evaluator's answers to their rows.

Needs Java 11 or later and, from PyPI: jpmml_evaluator 0.16.0, jpype1, sklearn2pmml 0.133.1, scikit-learn 1.9.0,
xgboost 3.2.0, lightgbm 4.7.0, pandas. Usage: python3 make.py [name ...]

Each folder gets model.pmml, rows.csv (an empty cell is a missing value) and expected.csv: every result column of
JPMML-Evaluator, empty if it has no answer.
"""

import csv
import math
import pathlib
import random
import re
import sys

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from jpmml_evaluator import make_evaluator
from sklearn import ensemble, tree
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (Binarizer, MinMaxScaler, OneHotEncoder, OrdinalEncoder, QuantileTransformer,
                                   StandardScaler, TargetEncoder)
from sklearn2pmml import sklearn2pmml
from sklearn2pmml.decoration import CategoricalDomain, ContinuousDomain
from sklearn2pmml.pipeline import PMMLPipeline

HERE = pathlib.Path(__file__).resolve().parent
COLOURS = ["red", "green", "blue", "x y"]


def training_rows():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({
        "a": rng.normal(size=400),
        "b": rng.integers(0, 9, 400).astype(float),
        "k": rng.choice(COLOURS, 400),
    })
    target = rows.a * 2 + rows.b + (rows.k == "red") * 3 + rng.normal(size=400) * 0.1
    return rows, target


def trained():
    """Yields names and fitted pipelines."""
    rows, number = training_rows()
    two = (number > number.median()).astype(int)
    three = pd.Series(np.digitize(number, [2, 6]), name="y")
    count = np.exp(number / 8)
    size = {"n_estimators": 3, "max_depth": 3}
    plain, every = rows[["a", "b"]], rows
    seeded = {"random_state": 1, **size}
    one_hot = ColumnTransformer([
        ("numbers", ContinuousDomain(), ["a", "b"]),
        ("colour", make_pipeline(CategoricalDomain(), OneHotEncoder()), ["k"]),
    ])
    ordinal = ColumnTransformer([
        ("numbers", ContinuousDomain(invalid_value_treatment="as_is"), ["a", "b"]),
        ("colour", OrdinalEncoder(), ["k"]),
    ])
    scaled = ColumnTransformer([("a", StandardScaler(), ["a"]), ("b", MinMaxScaler(), ["b"])])
    encoded = ColumnTransformer([
        ("a", QuantileTransformer(n_quantiles=20), ["a"]),
        ("b", Binarizer(threshold=4), ["b"]),
        ("k", TargetEncoder(random_state=1), ["k"]),
    ])
    imputed = ColumnTransformer([("numbers", SimpleImputer(), ["a", "b"])])
    whole = rows.assign(i=rows.b.astype(int) % 4)[["a", "i"]]
    integers = ColumnTransformer([("numbers", ContinuousDomain(), ["a"]), ("i", OneHotEncoder(), ["i"])])
    ordinals = ColumnTransformer([("numbers", ContinuousDomain(), ["a"]), ("i", OrdinalEncoder(), ["i"])])
    models = {
        "sklearn_integers": (whole, number, [integers, ensemble.RandomForestRegressor(**seeded)]),
        "sklearn_ordinals": (whole, number, [ordinals, ensemble.RandomForestRegressor(**seeded)]),
        "sklearn_tree": (plain, three, [tree.DecisionTreeClassifier(max_depth=3)]),
        "sklearn_forest": (plain, three, [ensemble.RandomForestClassifier(**seeded)]),
        "sklearn_one_hot": (every, number, [one_hot, ensemble.RandomForestRegressor(**seeded)]),
        "sklearn_imputed": (plain, number, [imputed, ensemble.ExtraTreesRegressor(**seeded)]),
        "sklearn_scaled": (plain, three, [scaled, ensemble.RandomForestClassifier(**seeded)]),
        "sklearn_encoded": (every, number, [encoded, ensemble.GradientBoostingRegressor(**seeded)]),
        "sklearn_boosting": (plain, two, [ensemble.GradientBoostingClassifier(**seeded)]),
        "sklearn_exponential": (plain, two, [ensemble.GradientBoostingClassifier(loss="exponential", **seeded)]),
        "sklearn_boosting_classes": (plain, three, [ensemble.GradientBoostingClassifier(**seeded)]),
        "sklearn_hist": (every, number, [ordinal, ensemble.HistGradientBoostingRegressor(
            max_iter=3, max_depth=3, categorical_features=[2])]),
        "sklearn_isolation": (plain, None, [ensemble.IsolationForest(n_estimators=3, max_samples=16, random_state=1)]),
        "xgboost_binary": (plain, two, [xgboost.XGBClassifier(**size)]),
        "xgboost_classes": (plain, three, [xgboost.XGBClassifier(**size)]),
        "xgboost_poisson": (plain, count, [xgboost.XGBRegressor(objective="count:poisson", **size)]),
        "xgboost_dart": (plain, number, [xgboost.XGBRegressor(booster="dart", rate_drop=0.4, **size)]),
        "lightgbm_binary": (plain, two, [lightgbm.LGBMClassifier(verbose=-1, **size)]),
        "lightgbm_classes": (plain, three, [lightgbm.LGBMClassifier(verbose=-1, **size)]),
        "lightgbm_poisson": (plain, count, [lightgbm.LGBMRegressor(objective="poisson", verbose=-1, **size)]),
    }
    for name, (x, y, steps) in models.items():
        yield name, PMMLPipeline([(f"step{i}", step) for i, step in enumerate(steps)]).fit(x, y)


FIELDS = ('<DataField name="a" optype="continuous" dataType="double"/>'
          '<DataField name="b" optype="continuous" dataType="float"/>'
          '<DataField name="i" optype="continuous" dataType="integer"/>'
          '<DataField name="k" optype="categorical" dataType="string">'
          + "".join(f'<Value value="{colour}"/>' for colour in COLOURS) + "</DataField>")


# For documents whose rows hold numbers that are no integers: j has whole numbers as categories.
CODES = [0, 1, 2, 5]
CODED_FIELD = ('<DataField name="j" optype="categorical" dataType="integer">'
               + "".join(f'<Value value="{code}"/>' for code in CODES) + "</DataField>")


def reference(name):
    return f'<FieldRef field="{name}"/>'


def apply(function, *arguments):
    parts = "".join(a if isinstance(a, str) else f'<Constant dataType="double">{a!r}</Constant>' for a in arguments)
    return f'<Apply function="{function}">{parts}</Apply>'


def lines(name, outliers):
    points = [(-3.77, -1.5), (-1.2977901484926815, 0.0), (-0.2, 0.37), (0.30756156219961667, 1.3), (3.06, 2.7)]
    return (f'<NormContinuous field="{name}" outliers="{outliers}">'
            + "".join(f'<LinearNorm orig="{x}" norm="{y}"/>' for x, y in points) + "</NormContinuous>")


BINS = ('<Discretize field="b"><DiscretizeBin binValue="-1"><Interval closure="openClosed" rightMargin="0"/></DiscretizeBin>'
        '<DiscretizeBin binValue="0.5"><Interval closure="openOpen" leftMargin="0" rightMargin="1.3"/></DiscretizeBin>'
        '<DiscretizeBin binValue="2"><Interval closure="closedOpen" leftMargin="1.3"/></DiscretizeBin></Discretize>')
TABLE = ('<MapValues outputColumn="to" defaultValue="0.1"><FieldColumnPair field="k" column="from"/><InlineTable>'
         "<row><from>red</from><to>1.3</to></row><row><from> green </from><to>2.7</to></row></InlineTable></MapValues>")
# Names, types and expressions of derived fields.
DERIVED = {
    "scaled": ("float", apply("/", apply("-", reference("a"), 0.1), -3.3)),
    "moved": ("double", apply("+", 0.3, apply("*", reference("b"), 0.7))),
    "lines": ("double", lines("a", "asExtremeValues")),
    "long_lines": ("float", lines("a", "asIs")),
    "bin": ("double", BINS),
    "value": ("float", TABLE),
    "one_hot": ("float", '<NormDiscrete field="k" value="x y"/>'),
    "below": ("double", apply("-", 2.7, reference("i"))),
    "lacks": ("boolean", apply("isMissing", reference("a"))),
    "lacks_number": ("float", '<NormDiscrete field="lacks" value="true"/>'),
    "cast": ("float", reference("lines")),
    # JPMML has no answer for a missing value here, so this is for trees that have none either.
    "above": ("float", apply("threshold", reference("scaled"), 0.1)),
    # These two may need compound predicates.
    "filled": ("double", apply("if", apply("isMissing", reference("a")), 2.7, reference("a"))),
    "replaced": ("float", apply("if", apply("isNotMissing", reference("a")),
                                apply("if", apply("equal", reference("a"), 1.3), -1.5, reference("a")))),
}


MINING_FIELDS = {
    "b": '<MiningField name="b" missingValueReplacement="1.3"/>',
    "k": '<MiningField name="k" invalidValueTreatment="asMissing"/>',
}


# For documents in which some numbers count as missing: what stands in them instead, the first time.
COUNTS = '<Value value="{}" property="missing"/>'.format
TREATED = {
    'name="a" optype="continuous" dataType="double"/>': (
        'name="a" optype="continuous" dataType="double"><Interval closure="closedOpen" leftMargin="-1.5" '
        'rightMargin="2.7"/>' + COUNTS("0.1") + "</DataField>"),
    'name="b" optype="continuous" dataType="float"/>': (
        'name="b" optype="continuous" dataType="float">' + COUNTS("1.3") + COUNTS("-1.5") + "</DataField>"),
    'name="i" optype="continuous" dataType="integer"/>': (
        'name="i" optype="continuous" dataType="integer"><Interval closure="openClosed" leftMargin="-2"/>'
        + COUNTS("2") + "</DataField>"),
    '<MiningField name="a"/>': '<MiningField name="a" invalidValueTreatment="asMissing"/>',
    'missingValueReplacement="1.3"': 'missingValueReplacement="0.1"',
    '<MiningField name="i"/>': '<MiningField name="i" invalidValueTreatment="asMissing"/>',
}


class Drawn:
    """A document with random trees: predicates of every kind, nodes of one to three children."""

    def __init__(self, seed, unknown, none_true, classes, method, derived=False, whole=None,
                 treated=False):
        """`whole` is "double" or "float" for a document about whole numbers, with sums of this type."""
        self.dice = random.Random(seed)
        self.derived = [n for n in DERIVED if n != "above" or unknown == "nullPrediction"] if derived else []
        self.strategy = f'missingValueStrategy="{unknown}" noTrueChildStrategy="{none_true}"'
        self.classes = classes
        self.method = method
        self.whole = whole
        self.treated = treated
        self.names = {None: "abik", "double": "abiijjk", "float": "biiik"}[whole]

    def simple(self, inside=False):
        if self.derived and self.dice.random() < 0.7:
            field = self.dice.choice(self.derived[: -3 if inside else None])
            operator = self.dice.choice(["lessThan", "lessOrEqual", "greaterThan", "greaterOrEqual"])
            value = self.dice.choice(["-1.5", "0", "0.1", "1.3", "2.7"])
            return f'<SimplePredicate field="{field}" operator="{operator}" value="{value}"/>'
        field = self.dice.choice(self.names)
        if self.dice.random() < 0.1:
            return f'<SimplePredicate field="{field}" operator="{self.dice.choice(["isMissing", "isNotMissing"])}"/>'
        if field == "j":
            return (f'<SimplePredicate field="j" operator="{self.dice.choice(["equal", "notEqual"])}" '
                    f'value="{self.dice.choice(CODES)}"/>')
        if field == "k":
            members = self.dice.sample(COLOURS, self.dice.randint(1, 3))
            if len(members) == 1:
                operator = self.dice.choice(["equal", "notEqual"])
                return f'<SimplePredicate field="k" operator="{operator}" value="{members[0]}"/>'
            operator, words = self.dice.choice(["isIn", "isNotIn"]), " ".join(f'"{m}"' for m in members)
            return (f'<SimpleSetPredicate field="k" booleanOperator="{operator}">'
                    f'<Array type="string">{words}</Array></SimpleSetPredicate>')
        order = ["lessThan", "lessOrEqual", "greaterThan", "greaterOrEqual"]
        operator = self.dice.choice(order * 3 + ["equal", "notEqual"])
        value = self.dice.choice(["-1", "0", "1", "2"] if field == "i" else ["-1.5", "0", "0.1", "1.3", "2.7"])
        return f'<SimplePredicate field="{field}" operator="{operator}" value="{value}"/>'

    def predicate(self):
        if self.dice.random() < 0.7:
            return self.simple()
        operator = self.dice.choice(["and", "or", "xor", "surrogate"])
        parts = "".join(self.simple(True) for _ in range(self.dice.randint(2, 3)))
        return f'<CompoundPredicate booleanOperator="{operator}">{parts}</CompoundPredicate>'

    def node(self, depth, predicate):
        self.nodes += 1
        number, children = self.nodes, []
        for _ in range(self.dice.choice([1, 2, 2, 3]) if depth > 0 else 0):
            children.append((self.nodes + 1, self.node(depth - 1, self.predicate())))
        score = self.dice.randrange(3) if self.classes else round(self.dice.gauss(0, 1), 3)
        chosen = f' defaultChild="{self.dice.choice(children)[0]}"' if children else ""
        return (f'<Node id="{number}" score="{score}"{chosen}>{predicate}' + "".join(text for _, text in children)
                + "</Node>\n")

    def transformations(self):
        if not self.derived:
            return ""
        fields = "".join(f'<DerivedField name="{name}" optype="continuous" dataType="{kind}">{text}</DerivedField>\n'
                         for name, (kind, text) in DERIVED.items())
        return f"<TransformationDictionary>\n{fields}</TransformationDictionary>\n"

    def document(self):
        function = "classification" if self.classes else "regression"
        used = sorted(set(self.names))
        schema = "".join(f'<MiningField name="{name}"/>' for name in used)
        context = ' x-mathContext="float"' if self.whole == "float" else ""
        segments = ""
        for number in range(3):
            self.nodes = 0
            segments += (f'<Segment id="{number}" weight="{number + 0.5}"><True/>'
                         f'<TreeModel functionName="{function}" {self.strategy}{context}><MiningSchema>{schema}'
                         "</MiningSchema>\n"
                         + self.node(2, "<True/>") + "</TreeModel></Segment>")
        target = ('<DataField name="y" optype="categorical" dataType="integer">'
                  + "".join(f'<Value value="{k}"/>' for k in range(3)) + "</DataField>" if self.classes else
                  f'<DataField name="y" optype="continuous" dataType="{self.whole or "double"}"/>')
        output = "".join(f'<OutputField name="probability({k})" optype="continuous" dataType="double" '
                         f'feature="probability" value="{k}"/>' for k in range(3))
        output = f"<Output>{output}</Output>" if self.classes else ""
        text = ('<?xml version="1.0"?>\n<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>\n'
                f"<DataDictionary>{target}{FIELDS}{CODED_FIELD if 'j' in used else ''}</DataDictionary>\n"
                f"{self.transformations()}"
                f'<MiningModel functionName="{function}"{context}><MiningSchema>'
                '<MiningField name="y" usageType="target"/>'
                + "".join(MINING_FIELDS.get(name, f'<MiningField name="{name}"/>') for name in used)
                + f'</MiningSchema>{output}\n'
                f'<Segmentation multipleModelMethod="{self.method}" missingPredictionTreatment="returnMissing">\n'
                f"{segments}</Segmentation></MiningModel></PMML>\n")
        for old, new in TREATED.items() if self.treated else ():
            text = text.replace(old, new, 1)
        return text


DRAWN = {
    "drawn_none": Drawn(2, "none", "returnLastPrediction", False, "sum"),
    "drawn_null": Drawn(3, "nullPrediction", "returnLastPrediction", False, "weightedAverage"),
    "drawn_last": Drawn(4, "lastPrediction", "returnNullPrediction", False, "weightedSum"),
    "drawn_default": Drawn(5, "defaultChild", "returnLastPrediction", False, "average"),
    "derived_none": Drawn(7, "none", "returnLastPrediction", False, "sum", derived=True),
    "derived_null": Drawn(9, "nullPrediction", "returnLastPrediction", False, "sum", derived=True),
    "derived_default": Drawn(8, "defaultChild", "returnLastPrediction", False, "sum", derived=True),
    "integers_none": Drawn(10, "none", "returnLastPrediction", False, "sum", whole="double"),
    "integers_null": Drawn(11, "nullPrediction", "returnLastPrediction", False, "sum", whole="double"),
    "integers_default": Drawn(12, "defaultChild", "returnLastPrediction", False, "average", whole="double"),
    "integers_float": Drawn(13, "lastPrediction", "returnLastPrediction", False, "sum", whole="float"),
    "missing_none": Drawn(14, "none", "returnLastPrediction", False, "sum", treated=True),
    "missing_null": Drawn(15, "nullPrediction", "returnLastPrediction", False, "sum", treated=True),
    "missing_default": Drawn(16, "defaultChild", "returnLastPrediction", False, "average", treated=True),
    "drawn_votes": Drawn(6, "lastPrediction", "returnLastPrediction", True, "majorityVote"),
}


def draw_rows(model, names, wrong):
    """Draws rows: missing values, values on thresholds, next to them, and elsewhere. If `wrong`, some numbers in
    fields of integers are none."""
    dice = random.Random(7)
    found = re.findall(r'Predicate field="[abi]" operator="\w+" value="([^"]+)"', model)
    found = found or re.findall(r'Predicate field="[^"]+" operator="\w+" value="([^"]+)"', model)
    thresholds = [float(text) for text in dict.fromkeys(found)]
    if "DerivedField" in model and "lines" in model:
        # Numbers at which the derived fields reach the values -1.5, 0, 0.1, 1.3 and 2.7.
        thresholds += [t * -3.3 + 0.1 for t in [-1.5, 0, 0.1, 1.3, 2.7]] + [(t - 0.3) / 0.7 for t in [0, 0.1, 1.3, 2.7]]
        thresholds += [-3.77, -1.2977901484926815, -1.0010938, -0.2, 0.30756156219961667, 3.06, 1.3, 0]

    def cell(name):
        if dice.random() < 0.1:
            return None
        if name == "k":
            return dice.choice(COLOURS + ["none"] if 'invalidValueTreatment="asMissing"' in model else COLOURS)
        if name == "i" and wrong and dice.random() < 0.2:
            return dice.choice([1.5, -0.5, 0.9999999999999999, 2.0000000000000004, 3e9, -2147483649.0, 1e300])
        if name == "j":
            return float(dice.choice(CODES if dice.random() < 0.8 else [3, 1.5, -1, 7, 1e9]))
        if name == "i" and wrong and dice.random() < 0.1:
            return float(dice.choice([2147483647, -2147483648, 16777217]))
        if name == "i":
            return dice.randint(-2, 3)
        value = dice.choice(thresholds) if dice.random() < 0.7 else dice.gauss(0, 2)
        kind = dice.random()
        if kind < 0.3:
            return float(np.nextafter(np.float32(value), np.float32(dice.choice([-9, 9]))))
        return float(np.nextafter(value, dice.choice([-9, 9]))) if kind < 0.5 else value

    return [{name: cell(name) for name in names} for _ in range(80)]


def answers(file, rows):
    evaluator = make_evaluator(str(file)).verify()
    results = []
    for row in rows:
        try:
            results.append(evaluator.evaluate(row))
        except Exception as refusal:
            # JPMML has no answer if a value is invalid, or if IsolationForest has no score for its other outputs.
            known = ("cannot accept invalid value", "cannot accept missing value", '"rawAnomalyScore" is not defined')
            assert any(text in str(refusal) for text in known), refusal
            results.append({})
    return results


def as_text(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value if isinstance(value, str) else repr(float(value))


def write_table(file, names, rows):
    with open(file, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([as_text(row.get(name)) for name in names] for row in rows)


def write_answers(name):
    folder = HERE / name
    model = (folder / "model.pmml").read_text()
    names = [n for n in "abijk" if f'<MiningField name="{n}"' in model]
    rows = draw_rows(model, names, name.startswith(("integers_", "missing_")))
    results = answers(folder / "model.pmml", rows)
    write_table(folder / "rows.csv", names, rows)
    write_table(folder / "expected.csv", max((list(r) for r in results), key=len), results)


def main():
    wanted = sys.argv[1:]
    for name, drawn in DRAWN.items():
        if not wanted or name in wanted:
            (HERE / name).mkdir(exist_ok=True)
            (HERE / name / "model.pmml").write_text(drawn.document())
            write_answers(name)
    for name, pipeline in trained():
        if not wanted or name in wanted:
            (HERE / name).mkdir(exist_ok=True)
            sklearn2pmml(pipeline, str(HERE / name / "model.pmml"))
            write_answers(name)


if __name__ == "__main__":
    main()
