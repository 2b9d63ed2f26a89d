// forestvm encode: writes the rank codes of rows, which programs then predict without encoding.
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>

#include "cli/backend.hpp"
#include "cli/batches.hpp"
#include "cli/commands.hpp"
#include "cli/io/coded_file.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"

namespace forestvm::cli {
namespace {

Result<void> encode_all(const Predictor& predictor, Batches& batches, CodedWriter& writer,
                        const std::string& model, const std::string& output) {
  const std::size_t columns = predictor.coded_columns();
  const std::unique_ptr<Context> context = predictor.make_context();
  Progress progress = batches.progress(output);
  CodeMemory codes;
  while (const std::size_t count = row_count(batches.rows())) {
    const std::size_t bytes = coded_bytes(count, columns);
    FVM_ASSIGN(const CodedRows coded,
               in_file(model, predictor.encode(*context, batches.rows(), {codes.resize(bytes), bytes})));
    FVM_TRY(writer.write(coded));
    FVM_TRY(batches.next());
    progress.show(batches.done());
  }
  return writer.finish();
}

Result<void> run_encode(const Arguments& arguments) {
  FVM_ASSIGN(const std::string model, required(arguments, "MODEL"));
  FVM_ASSIGN(const BatchOptions rows, batch_options(arguments));
  FVM_TRY(expect_one_standard_input(model, rows.path));
  if (!arguments.has("out")) return usage_error("-o OUT.fvr is missing");
  const std::string out = arguments.get("out");
  BackendOptions backend;
  backend.target = arguments.get("target", "auto");
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMaxThreads, 0));
  backend.threads = static_cast<unsigned>(threads);
  FVM_TRY(expect_other_file(out, model));
  FVM_TRY(expect_other_file(out, rows.path));
  FVM_ASSIGN(const Program program, requested_program(arguments, model));
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor, host_backend(program, backend));
  FVM_TRY(in_file(model, predictor->encode(*predictor->make_context(), RowBlock{}, {})));
  const std::size_t columns = predictor->coded_columns();
  FVM_ASSIGN(Batches batches, Batches::open(rows, program, columns));
  if (std::holds_alternative<CodedRows>(batches.rows()))
    return in_file(rows.path, refused("holds encoded rows already"));
  FVM_ASSIGN(CodedWriter writer, CodedWriter::open(out, columns, encoder_id(program)));
  return encode_all(*predictor, batches, writer, model, out);
}

std::string encode_notes() {
  return "An encoded row has one byte for each 255 thresholds of each feature that the model tests, instead of 4\n"
         "bytes for each feature. A model with linear leaves takes 8 more bytes for each feature that they read.\n"
         "run, bench and proximity take the output in place of rows, with this model and schedule and with all\n"
         "programs that have the same encoder. Predictions equal those of the rows, bit for bit, and take no time\n"
         "for encoding. If a program's plan for a few rows reads values (dump shows it), one encoded row takes as\n"
         "long as a block of them.\n"
         "Rows are read, encoded and written batch by batch; only one batch is in memory.\n"
         "Rows for a program that runs on a GPU are encoded with a program of the same model for the host.\n";
}

}  // namespace

const Command kEncode = {
    "encode",
    "encodes rows once, to predict them many times",
    {"encode MODEL ROWS -o OUT.fvr [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"},
     {"ROWS", "as for run, except encoded rows; - is standard input"}},
    {{"out", 'o', "OUT", "the file of encoded rows to write; - is standard output", kFiles},
     kScheduleOption,
     {"target", '\0', "T", "as for run", kTargetOption.values},
     {"threads", '\0', "N", "number of threads; default: all cores"},
     {"batch", '\0', "N", "rows per batch of the file, default 65536 or 32 MiB of rows and codes"},
     FVM_ROW_OPTIONS,
     kMissingOption,
     kRoundsOption,
     kContractOption,
     kStrictOption},
    "  forestvm encode model.fvm rows.csv -o rows.fvr\n"
    "  forestvm run model.fvm rows.fvr\n",
    encode_notes,
    run_encode,
};

}  // namespace forestvm::cli
