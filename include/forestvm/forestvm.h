/* The C ABI of the runtime: program files (.fvm) in, predictions out. Plain C99; link forestvm_runtime, which
 * holds neither the readers of model files nor the compiler: `forestvm compile model.json -o model.fvm` makes
 * the program.
 *
 *   fvm_program *program;
 *   fvm_context *context;
 *   if (fvm_program_open("model.fvm", NULL, &program) != FVM_OK) fail(fvm_last_error());
 *   if (fvm_context_create(program, &context) != FVM_OK) fail(fvm_last_error());   // one per calling thread
 *   if (fvm_predict_f32(context, rows, count, stride, FVM_OUTPUT_VALUE, out, capacity) != FVM_OK)
 *     fail(fvm_last_error());
 *   fvm_context_destroy(context);
 *   fvm_program_close(program);
 *
 * Errors: where an fvm_status is not FVM_OK, fvm_last_error() says why; what a failed call leaves in an
 * output is undefined. Null pointers, handles of the other kind, rows that are too short and outputs that are
 * too small are FVM_USAGE. A handle that was closed, or that none of these functions gave, cannot be told
 * from other memory: using it is undefined. No C++ exception leaves a function.
 *
 * Threads: a program may be used by any number of threads at once. A context serves one call at a time: each
 * thread creates its own. Programs that were opened with the same number of threads share these threads,
 * which last until the process ends; so does the library itself, which dlclose does not unload.
 *
 * Fork: a child process may go on using its parent's programs on the host and their contexts, but for
 * contexts that another thread's call was using, and may open more. Only the thread that forked is in the
 * child: the first call that wants more starts them again, or works alone where the system starts none.
 * Programs on a GPU cannot be used in a child.
 *
 * Growth: functions, status codes and fields at the end of structs may be added; what is here keeps its
 * meaning as long as the library keeps its SONAME. */
#ifndef FORESTVM_FORESTVM_H
#define FORESTVM_FORESTVM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FVM_API __attribute__((visibility("default")))
#else
#define FVM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** How a call went: who has to act. Later versions may add codes. */
typedef int32_t fvm_status;
enum {
  FVM_OK = 0,
  FVM_REFUSED = 1, /**< the program cannot be accepted, or cannot do what was asked of it */
  FVM_USAGE = 2,   /**< the call makes no sense: a null pointer, a wrong handle, a size that does not fit */
  FVM_ENVIRONMENT = 3, /**< a file or a CPU feature is missing, I/O failed, or memory ran out */
  FVM_INTERNAL = 4     /**< a bug of forestvm: please report it with the message */
};

/** What a prediction is. */
typedef int32_t fvm_output;
enum {
  FVM_OUTPUT_RAW = 0,   /**< float32: the trainer's raw scores; float64 ones (LightGBM's) are rounded once */
  FVM_OUTPUT_VALUE = 1, /**< float32: what the trainer's own predict gives, e.g. probabilities; likewise */
  FVM_OUTPUT_CLASS = 2, /**< int64: index of the predicted label */
  FVM_OUTPUT_LEAF = 3   /**< int32: for each tree the number of the row's leaf, as the trainer counts nodes */
};

/** How much of a program is proved before it is opened. */
typedef int32_t fvm_verification;
enum {
  FVM_VERIFY_FULL = 0, /**< checksum and every rule: what opens is safe to run, wherever it came from */
  FVM_VERIFY_TRUST = 1 /**< only its tables: for files that nobody else can write; others may crash */
};

/** A program that is ready to run. */
typedef struct fvm_program fvm_program;

/** The memory that a call writes to besides its output; belongs to one program. */
typedef struct fvm_context fvm_context;

/** How to open a program. Begin with FVM_OPEN_OPTIONS_INIT, then change fields. Where a later version has
 * more fields, an earlier library takes them if they are zero: their defaults. */
typedef struct fvm_open_options {
  size_t size;        /**< sizeof(fvm_open_options), as the caller was compiled */
  const char* target; /**< CPU target of the walkers; NULL or "auto": what the environment variable
                          FORESTVM_TARGET names, or else the best that this CPU runs */
  uint32_t threads;   /**< for loops that the schedule made parallel, the calling thread included; 1: all in
                           the calling thread; 0: as many as the machine has */
  fvm_verification verification; /**< FVM_VERIFY_FULL or FVM_VERIFY_TRUST */
} fvm_open_options;

/** The defaults, as an initializer: the best target, one thread, full verification. */
#define FVM_OPEN_OPTIONS_INIT \
  { sizeof(fvm_open_options), NULL, 1, FVM_VERIFY_FULL }

/** What the values that sparse rows do not hold are. */
typedef int32_t fvm_absent;
enum {
  FVM_ABSENT_MISSING = 0, /**< missing, as XGBoost reads sparse rows */
  FVM_ABSENT_ZERO = 1     /**< 0, as LightGBM reads them */
};

/** Sparse rows (CSR, as SciPy's csr_matrix has them). Row i holds the values offsets[i] to offsets[i + 1] -
 * 1, each of the feature that `columns` has at its place. The features of a row come in any order; of several
 * values of a feature in one row the last counts. NaN is a missing value. offsets[0] may be more than 0: a
 * part of other rows. Begin with FVM_CSR_ROWS_INIT, then set fields; later versions as in fvm_open_options.
 */
typedef struct fvm_csr_rows {
  size_t size;            /**< sizeof(fvm_csr_rows), as the caller was compiled */
  size_t row_count;       /**< from 0 (then the pointers may be NULL) */
  const int64_t* offsets; /**< row_count + 1, none below the one before, from 0 to value_count */
  const int32_t* columns; /**< value_count of them, from 0 to num_features - 1 */
  const float* values;    /**< value_count of them */
  size_t value_count;     /**< 0: `columns` and `values` may be NULL */
  fvm_absent absent;      /**< FVM_ABSENT_MISSING or FVM_ABSENT_ZERO */
} fvm_csr_rows;

/** The defaults, as an initializer: no rows, what is absent is missing. */
#define FVM_CSR_ROWS_INIT \
  { sizeof(fvm_csr_rows), 0, NULL, NULL, NULL, 0, FVM_ABSENT_MISSING }

/** Rows that are encoded: what fvm_encode_f32 and its like made of them. They may be kept, and predicted by
 * any program whose encoder is the same: the one that they were made for, also when it is opened again. Codes
 * lie in blocks of 64 rows, in a block one column after the other, 64 bytes each; `row_count` rows from the
 * beginning of any block on are rows, too. Any bytes are safe: codes which no row has lead to some leaf of
 * each tree. Begin with FVM_CODED_ROWS_INIT, then set fields; later versions as in fvm_open_options. */
typedef struct fvm_coded_rows {
  size_t size;          /**< sizeof(fvm_coded_rows), as the caller was compiled */
  const uint8_t* codes; /**< the first row's block; aligned to 64 bytes they are read fastest */
  size_t row_count;     /**< from 0 (then `codes` may be NULL) */
  size_t column_count;  /**< the program's: fvm_encode_f32 sets it */
  size_t byte_count;    /**< that may be read at `codes`: what fvm_encoded_size says, or more */
  uint64_t encoder;     /**< which encoder made them: fvm_encode_f32 sets it */
} fvm_coded_rows;

/** The defaults, as an initializer: no rows. */
#define FVM_CODED_ROWS_INIT \
  { sizeof(fvm_coded_rows), NULL, 0, 0, 0, 0 }

/** Who made a GPU. */
typedef int32_t fvm_gpu_vendor;
enum {
  FVM_GPU_CUDA = 0, /**< NVIDIA's, through libforestvm_cuda.so */
  FVM_GPU_HIP = 1   /**< AMD's, through libforestvm_hip.so */
};

/** How to open a program on a GPU. Begin with FVM_GPU_OPTIONS_INIT, then change fields; later versions as in
 * fvm_open_options. */
typedef struct fvm_gpu_options {
  size_t size;                   /**< sizeof(fvm_gpu_options), as the caller was compiled */
  fvm_gpu_vendor vendor;         /**< FVM_GPU_CUDA or FVM_GPU_HIP */
  int32_t device;                /**< its ordinal, as the vendor counts */
  fvm_verification verification; /**< FVM_VERIFY_FULL or FVM_VERIFY_TRUST */
} fvm_gpu_options;

/** The defaults, as an initializer: the first CUDA device, full verification. */
#define FVM_GPU_OPTIONS_INIT \
  { sizeof(fvm_gpu_options), FVM_GPU_CUDA, 0, FVM_VERIFY_FULL }

/** Rows in the memory of a GPU, as DLPack and __cuda_array_interface__ describe them. Begin with
 * FVM_DEVICE_ROWS_INIT, then set fields; later versions as in fvm_open_options. */
typedef struct fvm_device_rows {
  size_t size;       /**< sizeof(fvm_device_rows), as the caller was compiled */
  const float* rows; /**< memory of the device: num_features numbers a row, NaN for a missing value */
  size_t row_count;  /**< from 0 (then `rows` may be NULL) */
  size_t row_stride; /**< elements from one row to the next, at least num_features */
  int32_t device;    /**< the device's ordinal: that of the program */
  void* stream;      /**< a cudaStream_t or hipStream_t of the device; NULL: its default stream */
} fvm_device_rows;

/** The defaults, as an initializer: no rows, device 0, its default stream. */
#define FVM_DEVICE_ROWS_INIT \
  { sizeof(fvm_device_rows), NULL, 0, 0, 0, NULL }

/** The library's version, "major.minor.patch". Never NULL; lives as long as the library. */
FVM_API const char* fvm_version(void);

/**
 * What went wrong in the calling thread's last call that did not return FVM_OK: the function, the place in
 * the input where there is one, what was found and what was expected; UTF-8 as far as the paths in it are.
 * Empty before the first failure; calls that succeed leave it alone. Never NULL; valid until the thread's
 * next failure or its end.
 */
FVM_API const char* fvm_last_error(void);

/**
 * Opens the program file at `path`, a null-terminated path as the system takes it. The file is mapped, not
 * read: it may be deleted or renamed, but must not be changed, before the program and its contexts are gone.
 * `options` may be NULL: FVM_OPEN_OPTIONS_INIT. On success `*program` is for fvm_program_close; on failure it
 * is NULL.
 *
 * FVM_REFUSED: no program file, damaged, of a format that this version does not read, or for a GPU
 * (fvm_program_open_gpu). FVM_ENVIRONMENT: the file cannot be read, this CPU lacks the target, memory or
 * threads ran out. FVM_USAGE: a null argument, an unknown target, options that make no sense.
 */
FVM_API fvm_status fvm_program_open(const char* path, const fvm_open_options* options, fvm_program** program);

/**
 * Opens the program whose file's `size` bytes begin at `image`, with any alignment. The bytes are copied:
 * they may be freed or changed when the call returns. Otherwise like fvm_program_open.
 */
FVM_API fvm_status fvm_program_open_memory(const void* image, size_t size, const fvm_open_options* options,
                                           fvm_program** program);

/**
 * Opens a program on a GPU: its model was compiled with a schedule for GPUs. `options` may be NULL:
 * FVM_GPU_OPTIONS_INIT. The vendor's library is loaded from the folder that the environment variable
 * FORESTVM_PLUGINS names, or else from beside this library or the calling program (or the folder of libraries
 * there), or else from where the loader looks. Contexts and predictions are as of other programs: rows of the
 * host are copied to the GPU and results back. Rows are encoded by a program for the host that has the same
 * encoder, not by this one. Otherwise like fvm_program_open and fvm_program_open_memory.
 *
 * FVM_REFUSED: also a program for the host, launches larger than the GPU allows, a layout without a kernel.
 * FVM_ENVIRONMENT: also no such library, driver or device, or too little of its memory.
 */
FVM_API fvm_status fvm_program_open_gpu(const char* path, const fvm_gpu_options* options,
                                        fvm_program** program);
FVM_API fvm_status fvm_program_open_gpu_memory(const void* image, size_t size, const fvm_gpu_options* options,
                                               fvm_program** program);

/**
 * How many GPUs of a vendor there are, more than 0. FVM_ENVIRONMENT: none, or no library or driver for them.
 * FVM_USAGE: an unknown vendor, a null `count`.
 */
FVM_API fvm_status fvm_gpu_count(fvm_gpu_vendor vendor, uint32_t* count);

/**
 * Closes a program. Its contexts keep working and keep what they need of it alive. NULL is fine. No other
 * call may be using this handle. FVM_USAGE: not a program.
 */
FVM_API fvm_status fvm_program_close(fvm_program* program);

/**
 * The shape of a program: numbers that a row has, raw scores that a row gets, trees. Each of the three
 * pointers may be NULL. FVM_USAGE: not a program.
 */
FVM_API fvm_status fvm_program_shape(const fvm_program* program, uint32_t* num_features,
                                     uint32_t* num_outputs, uint32_t* num_trees);

/**
 * How many numbers a row's prediction of this kind has: the output of `row_count` rows has row_count x
 * `*width` elements in C order. 0 where the program cannot give this kind, and for leaves of a program
 * without trees. FVM_USAGE: not a program, an unknown kind, a null `width`.
 */
FVM_API fvm_status fvm_program_width(const fvm_program* program, fvm_output output, uint32_t* width);

/**
 * What runs, for people: backend, CPU target, threads. Lives as long as `program` is open. NULL if it is not
 * a program.
 */
FVM_API const char* fvm_program_description(const fvm_program* program);

/**
 * Creates a context for calls to `program`; each thread that predicts needs its own. On success `*context` is
 * for fvm_context_destroy, before or after its program is closed, in any thread; on failure it is NULL.
 * FVM_USAGE: not a program, a null `context`. FVM_ENVIRONMENT: memory ran out.
 */
FVM_API fvm_status fvm_context_create(const fvm_program* program, fvm_context** context);

/** Destroys a context. NULL is fine. No call may be using it. FVM_USAGE: not a context. */
FVM_API fvm_status fvm_context_destroy(fvm_context* context);

/**
 * Predicts raw scores or values: `output` is FVM_OUTPUT_RAW or FVM_OUTPUT_VALUE.
 *
 * `rows` is `row_count` rows of num_features float32, NaN for a missing value; a row's numbers are contiguous
 * and the next row begins `row_stride` elements (not bytes) after it, at least num_features. Writes row_count
 * x width float32 in C order to `out`, which has room for `out_capacity` elements (not bytes), more than
 * needed or as many. Any `row_count`, from 0 (then `rows` and `out` may be NULL) to what memory holds; a
 * single row is as good as a batch.
 *
 * With one thread, a call allocates nothing and takes no lock once the context has answered a call for this
 * kind of output with as many rows.
 *
 * FVM_USAGE: a null pointer, not a context, a context that another call is using, another kind of output, a
 * stride below num_features, an output that is too small. FVM_ENVIRONMENT: memory ran out.
 */
FVM_API fvm_status fvm_predict_f32(fvm_context* context, const float* rows, size_t row_count,
                                   size_t row_stride, fvm_output output, float* out, size_t out_capacity);

/**
 * The same in float64: the very scores and values of a program whose trainer sums in float64 (LightGBM's),
 * the float32 ones of any other.
 */
FVM_API fvm_status fvm_predict_wide_f32(fvm_context* context, const float* rows, size_t row_count,
                                        size_t row_stride, fvm_output output, double* out,
                                        size_t out_capacity);

/**
 * Predicts the index of each row's label: row_count x width int64. Rows, sizes, memory and errors as in
 * fvm_predict_f32; FVM_REFUSED: the model has no classes.
 */
FVM_API fvm_status fvm_predict_class_f32(fvm_context* context, const float* rows, size_t row_count,
                                         size_t row_stride, int64_t* out, size_t out_capacity);

/**
 * Predicts where rows end: row_count x num_trees int32, the number of the leaf as the trainer counts that
 * tree's nodes, trees in the model's order. Rows, sizes, memory and errors as in fvm_predict_f32.
 */
FVM_API fvm_status fvm_predict_leaf_f32(fvm_context* context, const float* rows, size_t row_count,
                                        size_t row_stride, int32_t* out, size_t out_capacity);

/**
 * Like the three above, for rows of float64; each number is compared as the float32 nearest to it.
 * FVM_REFUSED: the trainer compared in float64 (LightGBM), so that rounded rows could go another way.
 */
FVM_API fvm_status fvm_predict_f64(fvm_context* context, const double* rows, size_t row_count,
                                   size_t row_stride, fvm_output output, float* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_class_f64(fvm_context* context, const double* rows, size_t row_count,
                                         size_t row_stride, int64_t* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_leaf_f64(fvm_context* context, const double* rows, size_t row_count,
                                        size_t row_stride, int32_t* out, size_t out_capacity);

/**
 * Like the four for float32, for sparse rows: the same predictions as of the dense rows that they stand for.
 * None is made dense where the program reads rank codes (a schedule with encode(u8)), else a bounded number
 * at a time: memory does not grow with features times rows.
 *
 * FVM_USAGE, with the row: offsets that descend or leave the values, a column that the model does not have.
 * FVM_USAGE: what fvm_predict_f32 says, a null `rows`, fields that make no sense.
 */
FVM_API fvm_status fvm_predict_csr(fvm_context* context, const fvm_csr_rows* rows, fvm_output output,
                                   float* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_wide_csr(fvm_context* context, const fvm_csr_rows* rows, fvm_output output,
                                        double* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_class_csr(fvm_context* context, const fvm_csr_rows* rows, int64_t* out,
                                         size_t out_capacity);
FVM_API fvm_status fvm_predict_leaf_csr(fvm_context* context, const fvm_csr_rows* rows, int32_t* out,
                                        size_t out_capacity);

/**
 * How many bytes the codes of `row_count` rows take, with 64 behind them that may be read: the room that
 * fvm_encode_f32 and its like need. FVM_USAGE: not a program, a null `byte_count`, more rows than memory
 * holds.
 */
FVM_API fvm_status fvm_encoded_size(const fvm_program* program, size_t row_count, size_t* byte_count);

/**
 * Encodes rows for the programs that have this one's encoder: writes their codes to `out`, which has room for
 * `out_capacity` bytes, and to `*coded` what the functions below take, as long as `out` is there. Rows as in
 * fvm_predict_f32, fvm_predict_f64 and fvm_predict_csr. A row's codes are worth it where the row is predicted
 * more than once, or elsewhere than where its values are: predictions of them are the same, to the bit, and
 * encoding costs no time then.
 *
 * FVM_REFUSED: the program reads rows' values: compile its model with a schedule that has encode(u8); or it
 * is on a GPU.
 * FVM_REFUSED, FVM_USAGE: what the functions for predictions say of such rows, a null `coded`, too little
 * room.
 */
FVM_API fvm_status fvm_encode_f32(fvm_context* context, const float* rows, size_t row_count,
                                  size_t row_stride, uint8_t* out, size_t out_capacity,
                                  fvm_coded_rows* coded);
FVM_API fvm_status fvm_encode_f64(fvm_context* context, const double* rows, size_t row_count,
                                  size_t row_stride, uint8_t* out, size_t out_capacity,
                                  fvm_coded_rows* coded);
FVM_API fvm_status fvm_encode_csr(fvm_context* context, const fvm_csr_rows* rows, uint8_t* out,
                                  size_t out_capacity, fvm_coded_rows* coded);

/**
 * Like the four for float32, for encoded rows. A program of several plans takes the one for so many rows if
 * its walks read codes alone, else the next such plan.
 *
 * FVM_REFUSED: codes of another encoder; every plan of the program has walks that read rows' values.
 * FVM_USAGE: another number of columns, too few bytes, and what fvm_predict_csr says.
 */
FVM_API fvm_status fvm_predict_coded(fvm_context* context, const fvm_coded_rows* rows, fvm_output output,
                                     float* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_wide_coded(fvm_context* context, const fvm_coded_rows* rows, fvm_output output,
                                          double* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_class_coded(fvm_context* context, const fvm_coded_rows* rows, int64_t* out,
                                           size_t out_capacity);
FVM_API fvm_status fvm_predict_leaf_coded(fvm_context* context, const fvm_coded_rows* rows, int32_t* out,
                                          size_t out_capacity);

/**
 * Like the four for float32, for rows in the memory of the program's GPU: `out` is memory of that GPU, too.
 * Returns when the work is queued on the rows' stream: the rows stay as they are, and the results are there,
 * when the stream has come that far. A context's calls run one after the other; where they change the stream,
 * the host waits for the call before. A failure of the GPU may show in a later call. A stream may be one that
 * the caller captures into a graph, if the context has made a call of as many rows before: the graph uses the
 * context's memory, so that the context outlives it, and makes no larger call, and no other one while it
 * runs.
 *
 * FVM_USAGE: rows on another device, a program of the host, a captured stream without such a call before, and
 * what fvm_predict_csr says. FVM_REFUSED: also
 * a model that takes zeros for missing values. FVM_ENVIRONMENT: the GPU failed, or has too little memory.
 */
FVM_API fvm_status fvm_predict_device(fvm_context* context, const fvm_device_rows* rows, fvm_output output,
                                      float* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_wide_device(fvm_context* context, const fvm_device_rows* rows,
                                           fvm_output output, double* out, size_t out_capacity);
FVM_API fvm_status fvm_predict_class_device(fvm_context* context, const fvm_device_rows* rows, int64_t* out,
                                            size_t out_capacity);
FVM_API fvm_status fvm_predict_leaf_device(fvm_context* context, const fvm_device_rows* rows, int32_t* out,
                                           size_t out_capacity);

#ifdef __cplusplus
}
#endif

#endif
