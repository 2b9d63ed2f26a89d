/* Predicts through the C ABI: consumer PROGRAM.fvm ROWS.npy EXPECTED_RAW.npy
 * Both files hold float32. Succeeds if the raw scores of all rows, at once, one by one, and column-major as float64,
 * have the expected bits. */
#include <forestvm/forestvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  float *numbers;
  size_t count;
} float_array;

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, fvm_last_error());
  return EXIT_FAILURE;
}

/* The numbers of an .npy file of format 1.0: magic and version (8 bytes), size of the header (2), header, numbers. */
static float_array read_npy(const char *path) {
  float_array array = {NULL, 0};
  unsigned char head[10];
  long begin = 0, end = 0;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return array;
  if (fread(head, 1, sizeof head, file) == sizeof head && fseek(file, 0, SEEK_END) == 0) {
    begin = 10 + head[8] + 256 * head[9];
    end = ftell(file);
  }
  if (begin < end && fseek(file, begin, SEEK_SET) == 0) {
    const size_t count = (size_t)(end - begin) / sizeof(float);
    array.numbers = malloc(count * sizeof(float));
    if (array.numbers != NULL) array.count = fread(array.numbers, sizeof(float), count, file);
  }
  fclose(file);
  return array;
}

/* Returns the number of rows whose scores have the expected bits. */
static size_t equal_rows(const float *scores, float_array expected, size_t outputs) {
  size_t equal = 0, i;
  for (i = 0; i < expected.count; i += outputs)
    equal += memcmp(scores + i, expected.numbers + i, outputs * sizeof(float)) == 0;
  return equal;
}

/* Predicts all rows, `rows_per_call` rows in a call. */
static int predict(fvm_context *context, float_array rows, size_t features, size_t outputs, size_t rows_per_call,
                   float *scores) {
  const size_t count = rows.count / features;
  size_t row;
  for (row = 0; row < count; row += rows_per_call) {
    const size_t now = count - row < rows_per_call ? count - row : rows_per_call;
    if (fvm_predict_f32(context, rows.numbers + row * features, now, features, FVM_OUTPUT_RAW, scores + row * outputs,
                        now * outputs) != FVM_OK)
      return failed("predict_f32");
  }
  return EXIT_SUCCESS;
}

/* Predicts all rows in Fortran order, as float64. */
static int predict_columns(fvm_context *context, float_array rows, size_t features, size_t outputs, float *scores) {
  const size_t count = rows.count / features;
  double *columns = malloc(rows.count * sizeof(double));
  size_t i;
  int status = EXIT_SUCCESS;
  fvm_rows described = FVM_COLUMN_MAJOR_ROWS(columns, FVM_TYPE_FLOAT64, count, features);
  if (columns == NULL) return EXIT_FAILURE;
  for (i = 0; i < rows.count; ++i) columns[i % features * count + i / features] = rows.numbers[i];
  if (fvm_predict(context, &described, FVM_OUTPUT_RAW, FVM_TYPE_FLOAT32, scores, count * outputs) != FVM_OK)
    status = failed("predict");
  free(columns);
  return status;
}

int main(int argc, char **argv) {
  fvm_program *program = NULL;
  fvm_context *context = NULL;
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  float_array rows, expected;
  uint32_t features, outputs;
  size_t count, together, one_by_one, by_columns;
  float *scores;
  if (argc != 4) return EXIT_FAILURE;
  rows = read_npy(argv[2]);
  expected = read_npy(argv[3]);

  if (fvm_program_open("no such file", NULL, &program) != FVM_ENVIRONMENT) return EXIT_FAILURE;
  options.threads = 2;
  if (fvm_program_open(argv[1], &options, &program) != FVM_OK) return failed("open");
  if (fvm_program_shape(program, &features, &outputs, NULL) != FVM_OK) return failed("shape");
  count = rows.count / features;
  if (count == 0 || expected.count != count * outputs) return EXIT_FAILURE;
  if (fvm_context_create(program, &context) != FVM_OK) return failed("context");
  scores = malloc(expected.count * sizeof(float));
  if (scores == NULL) return EXIT_FAILURE;
  if (predict(context, rows, features, outputs, count, scores) != EXIT_SUCCESS) return EXIT_FAILURE;
  together = equal_rows(scores, expected, outputs);
  if (predict(context, rows, features, outputs, 1, scores) != EXIT_SUCCESS) return EXIT_FAILURE;
  one_by_one = equal_rows(scores, expected, outputs);
  if (predict_columns(context, rows, features, outputs, scores) != EXIT_SUCCESS) return EXIT_FAILURE;
  by_columns = equal_rows(scores, expected, outputs);
  printf("forestvm %s, %s: of %u rows, %u, one by one %u and by columns %u have the expected bits\n", fvm_version(),
         fvm_program_description(program), (unsigned)count, (unsigned)together, (unsigned)one_by_one,
         (unsigned)by_columns);
  fvm_context_destroy(context);
  fvm_program_close(program);
  free(scores);
  free(rows.numbers);
  free(expected.numbers);
  return together == count && one_by_one == count && by_columns == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
