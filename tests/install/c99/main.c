/* Predicts through the C ABI: consumer PROGRAM.fvm ROWS.npy EXPECTED_RAW.npy
 * Both files hold float32. Succeeds if the raw scores of all rows, at once and one by one, have the expected bits. */
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

/* How many rows' scores have the expected bits, in one call for all rows or in a call for each. */
static size_t equal_rows(fvm_context *context, float_array rows, float_array expected, size_t features,
                         size_t outputs, size_t rows_per_call) {
  const size_t count = rows.count / features;
  size_t equal = 0, row, i;
  float *scores = malloc(expected.count * sizeof(float));
  if (scores == NULL) return 0;
  for (row = 0; row < count; row += rows_per_call) {
    const size_t now = count - row < rows_per_call ? count - row : rows_per_call;
    if (fvm_predict_f32(context, rows.numbers + row * features, now, features, FVM_OUTPUT_RAW,
                        scores + row * outputs, now * outputs) != FVM_OK) {
      failed("predict");
      free(scores);
      return 0;
    }
  }
  for (i = 0; i < count; ++i)
    equal += memcmp(scores + i * outputs, expected.numbers + i * outputs, outputs * sizeof(float)) == 0;
  free(scores);
  return equal;
}

int main(int argc, char **argv) {
  fvm_program *program = NULL;
  fvm_context *context = NULL;
  fvm_open_options options = FVM_OPEN_OPTIONS_INIT;
  float_array rows, expected;
  uint32_t features, outputs;
  size_t count, together, one_by_one;
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
  together = equal_rows(context, rows, expected, features, outputs, count);
  one_by_one = equal_rows(context, rows, expected, features, outputs, 1);
  printf("forestvm %s, %s: of %u rows, %u and one by one %u have the expected bits\n", fvm_version(),
         fvm_program_description(program), (unsigned)count, (unsigned)together, (unsigned)one_by_one);
  fvm_context_destroy(context);
  fvm_program_close(program);
  free(rows.numbers);
  free(expected.numbers);
  return together == count && one_by_one == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
