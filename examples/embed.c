/* Predicts with a program file in several threads, which share the program; each has a context of its own:
 *   embed PROGRAM.fvm FEATURES
 * The program must have one output. */
#include <forestvm/forestvm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4, kRows = 100 };

typedef struct {
  fvm_program* program;
  size_t features;
  float first_value;
  int failed;
} job;

static void* predict(void* data) {
  job* const mine = data;
  fvm_context* context = NULL;
  float values[kRows];
  float* const rows = calloc(kRows * mine->features, sizeof(float)); /* all zero */
  mine->failed = 1;
  if (rows == NULL) return NULL;
  if (fvm_context_create(mine->program, &context) != FVM_OK ||
      fvm_predict_f32(context, rows, kRows, mine->features, FVM_OUTPUT_VALUE, values, kRows) != FVM_OK) {
    fprintf(stderr, "%s\n", fvm_last_error()); /* of this thread */
  } else {
    mine->first_value = values[0];
    mine->failed = 0;
  }
  fvm_context_destroy(context);
  free(rows);
  return NULL;
}

int main(int argc, char** argv) {
  fvm_program* program;
  pthread_t threads[kThreads];
  job jobs[kThreads];
  int i, failed = 0;
  if (argc != 3) return fputs("usage: embed PROGRAM.fvm FEATURES\n", stderr), 2;
  if (fvm_program_open(argv[1], NULL, &program) != FVM_OK)
    return fprintf(stderr, "%s\n", fvm_last_error()), 1;
  for (i = 0; i < kThreads; ++i) {
    jobs[i].program = program;
    jobs[i].features = (size_t)strtoul(argv[2], NULL, 10);
    if (pthread_create(&threads[i], NULL, predict, &jobs[i]) != 0) return fputs("no thread\n", stderr), 1;
  }
  for (i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    failed |= jobs[i].failed || jobs[i].first_value != jobs[0].first_value;
  }
  if (!failed) printf("%d threads agree on %g\n", kThreads, (double)jobs[0].first_value);
  fvm_program_close(program);
  return failed;
}
