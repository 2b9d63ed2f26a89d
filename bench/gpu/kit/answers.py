"""Compares a GPU's raw scores with the host's, bit for bit: answers.py JOB.json. `go` writes the job and reads the
lines of JSON on standard output: one when a program begins, one when it ends. Standard library only, so that sanitizers
and profilers see the calls of forestvm and nothing else."""

import ast, ctypes, json, sys, time

import api, driver

POISON = 0xAB  # fills results before each call, so that a score that nobody writes is found
# The calls with a batch in one context. forestvm gives the first call to the GPU operation by operation, and makes a
# graph of the second if it has several operations. The last call has other rows, whose addresses the graph must learn.
TURNS = ["first call", "graph built", "graph replayed", "graph replayed, other rows"]
PLACES = ["host rows", "device rows"]


def say(**line):
    print(json.dumps(line), flush=True)


class Wrong(Exception):
    """Raised if answers differ. `found` says where."""

    def __init__(self, **found):
        super().__init__(found)
        self.found = found


class Array:
    """The numbers of a NumPy file of a matrix or vector in C order."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if data[:6] != b"\x93NUMPY":
            raise ValueError(f"{path}: not a NumPy file")
        wide = 4 if data[6] > 1 else 2
        begin = 8 + wide + int.from_bytes(data[8 : 8 + wide], "little")
        head = ast.literal_eval(data[8 + wide : begin].decode("latin1"))
        if head["fortran_order"] or head["descr"] not in ("<f4", "<f8"):
            raise ValueError(f"{path}: expected float32 or float64 in C order")
        self.rows, self.columns = head["shape"][0], head["shape"][1] if len(head["shape"]) > 1 else 1
        self.wide = head["descr"] == "<f8"
        self.row_bytes = self.columns * (8 if self.wide else 4)
        self.data = data[begin:]
        if len(self.data) != self.rows * self.row_bytes:
            raise ValueError(f"{path}: {len(self.data)} bytes of numbers, expected {self.rows * self.row_bytes}")

    def repeated(self, count):
        """Repeats the rows up to `count` rows if there are fewer."""
        if count > self.rows:
            times = -(-count // self.rows)
            self.data, self.rows = (self.data * times)[: count * self.row_bytes], count

    def part(self, begin, count):
        return self.data[begin * self.row_bytes : (begin + count) * self.row_bytes]


class Case:
    """A program with its rows and the host's raw scores of them."""

    def __init__(self, library, item):
        self.rows, self.expected = Array(item["rows"]), Array(item["expected"])
        most = item.get("most_bytes", 1 << 62) // self.rows.row_bytes
        for array in (self.rows, self.expected):
            array.repeated(min(max(batch or 0 for batch in item["batches"]), max(1, most)))
        if self.rows.wide or self.rows.rows != self.expected.rows:
            raise ValueError(f"{item['rows']}: expected float32, as many rows as {item['expected']} has")
        self.type = api.FLOAT64 if self.expected.wide else api.FLOAT32
        self.program = api.Program(library, item["program"])
        if (self.program.features, self.program.outputs) != (self.rows.columns, self.expected.columns):
            raise ValueError(f"{item['program']}: its rows or scores have another width than the files")
        self.compared = 0

    def batches(self, wanted):
        """Returns the numbers of rows to predict at once; None in `wanted` stands for all rows."""
        return sorted({min(batch or self.rows.rows, self.rows.rows) for batch in wanted})

    def compare(self, got, begin, count, way):
        wanted = self.expected.part(begin, count)
        self.compared += count
        if got == wanted:
            return
        size, width = 8 if self.expected.wide else 4, self.expected.columns

        def scores(data):
            return [data[i : i + size][::-1].hex() for i in range(0, len(data), size)]

        pairs = list(zip(scores(got), scores(wanted)))
        differing = [i for i, (one, other) in enumerate(pairs) if one != other]
        first = differing[0]
        raise Wrong(
            way=way,
            batch=count,
            differing=len(differing),
            of=len(pairs),
            row=begin + first // width,
            output=first % width,
            got=pairs[first][0],
            expected=pairs[first][1],
        )


class HostRows:
    """Calls with rows in the host's memory."""

    def __init__(self, case, device):
        self.case = case

    def answer(self, begin, count):
        rows = self.case.rows.part(begin, count)
        size = count * self.case.expected.row_bytes
        out = ctypes.create_string_buffer(bytes([POISON]) * size, size)
        address = ctypes.cast(ctypes.c_char_p(rows), ctypes.c_void_p)
        self.case.program.predict_host(address, count, out, self.case.type)
        return out.raw

    def close(self):
        pass


class DeviceRows:
    """Calls with rows and results in the device's memory, on the default stream."""

    def __init__(self, case, device):
        self.case = case
        self.rows, self.out = (
            driver.Memory(device, len(array.data)) for array in (case.rows, case.expected)
        )
        self.rows.write(case.rows.data)

    def answer(self, begin, count):
        self.out.fill(POISON)
        rows = self.rows.address.value + begin * self.case.rows.row_bytes
        self.case.program.predict(rows, count, self.out.address.value, type=self.case.type)
        return self.out.read(count * self.case.expected.row_bytes)

    def close(self):
        self.rows.free()
        self.out.free()


def answers(case, device, item):
    """Compares all batches in all ways. Returns why a way was refused, by its name."""
    refused = {}
    for place, Calls in zip(PLACES, (HostRows, DeviceRows)):
        calls = Calls(case, device)
        try:
            for count in case.batches(item["batches"]):
                # Small batches do not begin with the first row, so that addresses have different alignments.
                left = case.rows.rows - count
                for turn, name in enumerate(TURNS[: item["turns"]]):
                    begin = min(left, count + 3 * turn if turn == 3 else count)
                    case.compare(calls.answer(begin, count), begin, count, f"{place}, {name}")
        except api.CallError as error:
            if error.status != api.REFUSED:
                raise
            refused[place] = str(error)
        finally:
            calls.close()
    return refused


def capture(case, device, item):
    """Captures a call on another stream than the earlier calls', and runs the graph with two sets of rows."""
    warm, other = driver.Stream(device), driver.Stream(device)
    count = case.batches(item["batches"])[-2:][0]  # not all rows, so that the graph can be given others
    calls = DeviceRows(case, device)

    def predict(stream):
        case.program.predict(calls.rows.address.value, count, calls.out.address.value, stream.handle, case.type)

    def compare(begin, way):
        case.compare(calls.out.read(count * case.expected.row_bytes), begin, count, way)

    try:
        for way in ("before the capture", "before the capture, again"):
            calls.out.fill(POISON)
            predict(warm)
            warm.wait()
            compare(0, way)
        graph = other.captured(lambda: predict(other))
        for begin in (0, case.rows.rows - count):
            calls.rows.write(case.rows.part(begin, count))
            calls.out.fill(POISON)
            graph.launch(other)
            other.wait()
            compare(begin, "the captured graph")
        graph.close()
        calls.out.fill(POISON)
        predict(warm)
        warm.wait()
        compare(case.rows.rows - count, "after the capture")
    except api.CallError as error:
        if error.status != api.REFUSED:
            raise
        return {"capture": str(error)}
    finally:
        calls.close()
        warm.close()
        other.close()
    return {}


def calls(case, device, item):
    """Makes calls with rows on the device and compares nothing, for a profiler."""
    rows = DeviceRows(case, device)
    try:
        for _ in range(item["turns"]):
            rows.answer(0, case.batches(item["batches"])[-1])
    finally:
        rows.close()
    return {}


def checked(library, device, item, work):
    """Returns the result of an item: how many rows were compared, what was refused, and what is wrong."""
    case, begin = None, time.time()
    line = dict(item=item["name"], compared=0, refused={}, wrong=None)
    try:
        case = Case(library, item)
        line["refused"] = work(case, device, item)
    except Wrong as wrong:
        line["wrong"] = wrong.found
    except api.CallError as error:
        if error.status == api.REFUSED:
            line["refused"] = {"the program": str(error)}
        else:
            line["wrong"] = dict(error=str(error))
    except (RuntimeError, ValueError, OSError) as error:
        line["wrong"] = dict(error=str(error))
    line["compared"] = case.compared if case else 0
    line["seconds"] = round(time.time() - begin, 3)
    if case:
        case.program.close()
    return line


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    library, device = api.Library(job["library"], job["needs"]), driver.Driver(job["driver"])
    say(device=device.describe())
    work = dict(answers=answers, capture=capture, calls=calls)[job["kind"]]
    for item in job["items"]:
        if time.time() > job["until"]:
            return
        say(begin=item["name"])
        line = checked(library, device, item, work)
        say(**line)
        if line["wrong"]:
            return


if __name__ == "__main__":
    main()
