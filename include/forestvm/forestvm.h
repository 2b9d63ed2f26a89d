/* The C ABI of the runtime: program files (.fvm) in, predictions out. Plain C99; link forestvm_runtime, which
 * holds neither the readers of model files nor the compiler: `forestvm compile model.json -o model.fvm` makes
 * the program.
 *
 *   fvm_program *program;
 *   fvm_context *context;
 *   if (fvm_program_open("model.fvm", NULL, &program) != FVM_OK) fail(fvm_last_error());
 *   if (fvm_context_create(program, &context) != FVM_OK) fail(fvm_last_error());   // one per calling thread
 *   fvm_rows rows = FVM_DENSE_ROWS(data, FVM_TYPE_FLOAT32, row_count, column_count);
 *   if (fvm_predict(context, &rows, FVM_OUTPUT_VALUE, FVM_TYPE_FLOAT32, out, capacity) != FVM_OK)
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
 * Fork: a child process may go on using its parent's programs on the host and their contexts, but for contexts that
 * another thread's call was using, and may open more. Only the thread that forked is in the child: the first call
 * that needs more threads starts them again, or works alone where the system starts none. Programs on a GPU cannot
 * be used in a child.
 *
 * Growth: functions, status codes and fields at the end of structs may be added; what is here keeps its
 * meaning as long as the library keeps its SONAME. */
#ifndef FORESTVM_FORESTVM_H
#define FORESTVM_FORESTVM_H

#include <stddef.h>
#include <stdint.h>

#include <forestvm/arrow_c_data.h>

#if defined(__GNUC__)
#define FVM_API __attribute__((visibility("default")))
#else
#define FVM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The outcome of a call; a failure says who has to act. Later versions may add codes. */
typedef int32_t fvm_status;
enum {
  FVM_OK = 0,
  FVM_REFUSED = 1, /**< The program or the rows cannot be accepted, or the request is not supported. */
  FVM_USAGE = 2,   /**< The call makes no sense: a null pointer, a wrong handle, a size that does not fit. */
  FVM_ENVIRONMENT = 3, /**< A file or a CPU feature is missing, I/O failed, or memory ran out. */
  FVM_INTERNAL = 4     /**< A bug of forestvm: please report it with the message. */
};

/** The kinds of predictions. */
typedef int32_t fvm_output;
enum {
  FVM_OUTPUT_RAW = 0,   /**< The trainer's raw scores. */
  FVM_OUTPUT_VALUE = 1, /**< The results of the trainer's own predict, e.g. probabilities. */
  FVM_OUTPUT_CLASS = 2, /**< Index of the predicted label. */
  FVM_OUTPUT_LEAF = 3,  /**< Number of each tree's leaf for a row, as the trainer numbers nodes. */
  /** What each feature contributes to the raw scores: exact SHAP values by the paths of the trees. A row has
   * num_features + 1 numbers for each output, of which the last is the expected score; they add up to the output's raw
   * score. Only programs that were compiled with contributions have them (forestvm compile --with contributions). */
  FVM_OUTPUT_CONTRIBUTIONS = 4,
  /** What each tree's leaf adds to the raw score, or to each one if leaves are vectors. */
  FVM_OUTPUT_TREES = 5,
  /** The raw scores after every few rounds (fvm_call_options.stage_every), and after the last: num_outputs numbers for
   * each. Only programs that keep leaves have stages and outputs of trees (forestvm compile --with trees,staged). */
  FVM_OUTPUT_STAGED = 6,
  /** What each two features contribute together: exact SHAP interactions. A row has a symmetric matrix of
   * num_features + 1 rows and columns for each output, whose rows add up to the contributions; what a feature
   * contributes alone is on the diagonal, and the expected score is the last number. Only programs that were compiled
   * with interactions have them (forestvm compile --with interactions). */
  FVM_OUTPUT_INTERACTIONS = 7,
  /** How much the mean score of the training rows changes at the splits of each feature on the row's way through the
   * trees (Saabas; XGBoost's approx_contribs). A row has num_features + 1 numbers for each output, of which the last is
   * the expected score; they add up to the output's raw score. Only programs that were compiled with approximate
   * contributions have them (forestvm compile --with approx-contributions). */
  FVM_OUTPUT_APPROX_CONTRIBUTIONS = 8,
  /** The raw scores of CatBoost's virtual ensembles (fvm_call_options.ensembles of them): num_outputs numbers for each.
   * Only programs that keep leaves have them (forestvm compile --with virt-ensembles). */
  FVM_OUTPUT_VIRT_ENSEMBLES = 9,
  /** How sure the model is: of CatBoost's models 2 or 3 numbers, as its TotalUncertainty; of a forest that averages its
   * trees the mean and the variance of the trees' scores, for each output. Only programs that keep leaves have it
   * (forestvm compile --with uncertainty). */
  FVM_OUTPUT_UNCERTAINTY = 10,
  /** Quantiles (fvm_call_options.quantiles) of the targets of the training rows in the leaves that the row reaches; NaN
   * if there are none. Only programs whose leaves keep targets have them (forestvm compile --with quantile). */
  FVM_OUTPUT_QUANTILE = 11
};

/** The type of a number, in rows, columns and predictions. */
typedef int32_t fvm_type;
enum {
  FVM_TYPE_FLOAT32 = 0,
  FVM_TYPE_FLOAT64 = 1,
  FVM_TYPE_FLOAT16 = 2, /**< IEEE 754 binary16, as NumPy's float16. */
  FVM_TYPE_INT8 = 3,
  FVM_TYPE_INT16 = 4,
  FVM_TYPE_INT32 = 5,
  FVM_TYPE_INT64 = 6,
  FVM_TYPE_UINT8 = 7,
  FVM_TYPE_UINT16 = 8,
  FVM_TYPE_UINT32 = 9,
  FVM_TYPE_UINT64 = 10,
  FVM_TYPE_BOOL = 11, /**< One byte: 0 is 0, any other value is 1. */
  FVM_TYPE_BIT = 12   /**< In columns only: a bit for each row, the lowest of a byte first. */
};

/** The extent to which a program is verified before it is opened. */
typedef int32_t fvm_verification;
enum {
  /** Checks the checksum and every rule: a program that opens is safe to run, wherever it came from. */
  FVM_VERIFY_FULL = 0,
  /** Checks only the tables: for files that nobody else can write, because a damaged one may crash. */
  FVM_VERIFY_TRUST = 1
};

/** A program that is ready to run. */
typedef struct fvm_program fvm_program;

/** The memory that a call writes to besides its output; belongs to one program. */
typedef struct fvm_context fvm_context;

/** Options for opening a program. Begin with FVM_OPEN_OPTIONS_INIT, then change fields. A later version may
 * have more fields; an earlier library accepts them if they are zero, which is their default. */
typedef struct fvm_open_options {
  size_t size;        /**< sizeof(fvm_open_options) when the caller was compiled. */
  const char* target; /**< CPU target of the walkers. NULL or "auto" means the one that the environment
                          variable FORESTVM_TARGET names, otherwise the best that this CPU runs. */
  uint32_t threads;   /**< Threads that run the schedule's parallel loops, the calling thread included. 1
                           runs everything in the calling thread; 0 means one per CPU of the machine. */
  fvm_verification verification; /**< FVM_VERIFY_FULL or FVM_VERIFY_TRUST. */
} fvm_open_options;

/** An initializer for the defaults: the best target, one thread, full verification. */
#define FVM_OPEN_OPTIONS_INIT \
  { sizeof(fvm_open_options), NULL, 1, FVM_VERIFY_FULL }

/** The value of features that a sparse row does not list. */
typedef int32_t fvm_absent;
enum {
  FVM_ABSENT_MISSING = 0, /**< Missing, as XGBoost reads sparse rows. */
  FVM_ABSENT_ZERO = 1     /**< 0, as LightGBM reads sparse rows. */
};

/** The treatment of columns of an Arrow array that the model does not have. */
typedef int32_t fvm_extra;
enum {
  FVM_EXTRA_ERROR = 0, /**< The rows are refused. */
  FVM_EXTRA_IGNORE = 1 /**< They are not read, whatever their type is. */
};

/** Says how rows lie in memory. */
typedef int32_t fvm_rows_kind;
enum {
  FVM_ROWS_DENSE = 0,   /**< A matrix: row-major, column-major, or a part of one. */
  FVM_ROWS_CSR = 1,     /**< Sparse rows, as SciPy's csr_matrix has them. */
  FVM_ROWS_ENCODED = 2, /**< Rank codes that fvm_encode made of other rows. */
  FVM_ROWS_DEVICE = 3,  /**< A row-major matrix of float32 in the memory of a GPU. */
  FVM_ROWS_COLUMNS = 4, /**< Columns, each with a type of its own: see fvm_column. */
  FVM_ROWS_ARROW = 5    /**< A struct array of Arrow's C data interface. */
};

/** The values of one feature. Begin with FVM_COLUMN_INIT, then set fields. All columns of a call have the same `size`.
 *
 * A value is missing if it is NaN, or if its bit in `validity` is 0. Bits are as Arrow has them: one for each row, the
 * lowest of a byte first. `offset` counts both values and bits: the first row's is number `offset`. Nothing needs
 * alignment; columns of float32 that begin at a multiple of 64 bytes are read fastest.
 *
 * A column of codes (a dictionary, as pandas' and Arrow's categorical columns are) has integers as `values`, which are
 * indices in `categories`. An index below 0 is a missing value, as in pandas. `categories` holds the number that each
 * index stands for: the code that the model has for the category (see fvm_program_category_code), which is a hash code
 * in features that the model compares as text; or NaN if the value is missing. */
typedef struct fvm_column {
  size_t size;              /**< sizeof(fvm_column) when the caller was compiled. */
  fvm_type type;            /**< Type of the values: any type; an integer type if they are indices. */
  const void* values;       /**< The values. May be NULL for a feature that the model does not read. */
  const uint8_t* validity;  /**< A bit for each value: 0 if it is missing. NULL if none is. */
  size_t offset;            /**< Number of the first row's value in `values` and `validity`. */
  const double* categories; /**< The numbers of a dictionary; NULL if the column has none. */
  size_t category_count;    /**< Length of `categories`. */
} fvm_column;

/** An initializer for a column without values: enough for a feature that the model does not read. */
#define FVM_COLUMN_INIT \
  { sizeof(fvm_column), FVM_TYPE_FLOAT32, NULL, NULL, 0, NULL, 0 }

/** An initializer for values of a type, none of which is missing unless it is NaN. */
#define FVM_COLUMN(values, type) \
  { sizeof(fvm_column), (type), (values), NULL, 0, NULL, 0 }

/** Describes rows to predict. Begin with one of the initializers below, then set further fields. A field that
 * is 0 or NULL has its default. Fields that a kind of rows does not use must be 0 or NULL. A later version
 * may have more fields; an earlier library accepts them if they are zero.
 *
 * FVM_ROWS_DENSE: the value of a row and a column is data[row * row_stride + column * column_stride]. Strides
 * count values, not bytes. Negative strides are not supported, and rows must not overlap.
 *
 * FVM_ROWS_CSR: row i holds the values number offsets[i] to offsets[i + 1] - 1 of `data`; the entry of
 * `columns` with the same number says which feature a value belongs to. The features of a row may come in any
 * order; if one comes several times, its last value counts. offsets[0] may be greater than 0: the rows are a
 * part of a larger matrix then.
 *
 * FVM_ROWS_ENCODED: fvm_encode sets all fields. The codes lie in blocks of 64 rows. A block holds one column
 * after the other, 64 bytes each. If the model has linear leaves, the values that they read stand behind the codes of
 * each block and count as 8 columns each. The rows may be split where a block begins. Any bytes are safe: codes that
 * no row has lead to some leaf of each tree. Codes that are aligned to 64 bytes are read fastest.
 *
 * FVM_ROWS_DEVICE: the rows are described as DLPack and __cuda_array_interface__ describe them.
 *
 * FVM_ROWS_COLUMNS: `data` is an array of fvm_column, one for each feature of the model.
 *
 * FVM_ROWS_ARROW: `data` is a struct ArrowArray of a struct type, such as a record batch, `schema` its struct
 * ArrowSchema. Neither is released or changed. The children are the features by name, in any order; if the model has no
 * names, in the model's order. Children are numbers of any type, booleans, or all null. Children of categorical
 * features, and of features that the model compares as text, may also be texts (utf8, large_utf8, utf8_view) or
 * dictionaries of texts or numbers, which are found among the names of the model's categories; a text that is not among
 * them is treated as the trainer treats it: as missing, as a certain category, or refused. Numbers without a dictionary
 * are codes of categories or, in features that the model compares as text, whole numbers that stand for their decimal
 * text. They are refused where they could also be names, because the model's categories are numbers that are not their
 * own codes. Other types are refused.
 *
 * NaN is a missing value. A value is compared as the float32 nearest to it, as the trainers of float32 models
 * do. A model that compares in float64 (such as LightGBM's) compares float64 rows exactly; it refuses rows with a
 * 64-bit integer that no float64 is equal to. */
typedef struct fvm_rows {
  size_t size;        /**< sizeof(fvm_rows) when the caller was compiled. */
  fvm_rows_kind kind; /**< Form of the rows: decides which of the other fields are used. */
  fvm_type type;    /**< Type of the values; any but FVM_TYPE_BIT for dense and CSR rows, FVM_TYPE_FLOAT32 on
                             a device. */
  size_t row_count; /**< Number of rows; if it is 0, all pointers may be NULL. Arrow: 0 means the length of
                             the array. */
  size_t column_count; /**< Number of columns: the model's number of features, or 0 for that number. For
                             encoded rows, fvm_encode sets it. */
  const void* data; /**< The first value; encoded: the first code; columns: the first fvm_column; Arrow: the
                             struct ArrowArray. */
  ptrdiff_t row_stride;    /**< Dense, device: distance of two rows in values. 0 means that the rows are
                             contiguous; column_stride must then be 0 or 1. */
  ptrdiff_t column_stride; /**< Dense: distance of two columns in values; 0 means 1. Device: 0 or 1. */
  const int64_t* offsets;  /**< CSR: row_count + 1 ascending numbers from 0 to value_count. */
  const int32_t* columns;  /**< CSR: value_count features, each below the model's number of features. */
  size_t value_count;      /**< CSR: length of `data` and `columns`, which may be NULL if it is 0. */
  fvm_absent absent;       /**< CSR: FVM_ABSENT_MISSING or FVM_ABSENT_ZERO. */
  int32_t device;          /**< Device: the ordinal of the device, which must be the program's. */
  void* stream;            /**< Device: a cudaStream_t or hipStream_t; NULL is the default stream. */
  size_t byte_count;       /**< Encoded: bytes that may be read at `data`, at least fvm_encoded_size's. */
  uint64_t encoder;        /**< Encoded: identifies the encoder that made the codes. */
  int32_t hashed;  /**< Dense, CSR, columns: 1 if features that the model compares as text hold the codes of
                             their categories (int32 numbers, in rows of FVM_TYPE_FLOAT64, FVM_TYPE_INT32 or
                             FVM_TYPE_INT64); 0 if they hold whole numbers that stand for their decimal text. */
  fvm_extra extra; /**< Arrow: FVM_EXTRA_ERROR or FVM_EXTRA_IGNORE. */
  const struct ArrowSchema* schema; /**< Arrow: the schema of `data`. */
} fvm_rows;

/* Converts a number of rows to a stride, in C and in C++ without a warning. */
#ifdef __cplusplus
#define FVM_STRIDE(count) static_cast<ptrdiff_t>(count)
#else
#define FVM_STRIDE(count) ((ptrdiff_t)(count))
#endif

/** Options of a call. Begin with FVM_CALL_OPTIONS_INIT, then change fields. A later version may have more fields, as
 * with fvm_open_options. */
typedef struct fvm_call_options {
  size_t size;                /**< sizeof(fvm_call_options) when the caller was compiled. */
  const void* base_margin;    /**< Margins from which the sums of the rows start instead of the model's base
                                   scores: row_count x num_outputs numbers in C order; NULL: none. */
  size_t base_margin_rows;    /**< Number of rows of the margins: that of the call. */
  size_t base_margin_outputs; /**< Number of margins of a row: the program's number of outputs. */
  fvm_type base_margin_type;  /**< FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64. */
  uint32_t early_stop_every;  /**< Rounds after which a decided row gets no more trees; 0: it gets all. */
  double early_stop_margin;   /**< Margin beyond which a row is decided: see fvm_predict_with. */
  uint32_t rounds_begin;      /**< First round whose trees count, from 0. */
  uint32_t rounds_end;        /**< Round after the last whose trees count; both 0: all rounds. */
  uint32_t stage_every;       /**< FVM_OUTPUT_STAGED: rounds from one stage to the next; 0: 1. */
  uint32_t ensembles;         /**< FVM_OUTPUT_VIRT_ENSEMBLES and FVM_OUTPUT_UNCERTAINTY: the number of virtual
                                   ensembles; 0: 10. */
  const uint32_t* features;   /**< Contributions of all kinds and interactions: the features that are wanted,
                                   ascending; NULL: all. */
  size_t feature_count;       /**< Number of `features`. */
  const double* quantiles; /**< FVM_OUTPUT_QUANTILE: the quantiles, each from 0 to 1; NULL: 0.1, 0.5, 0.9. */
  size_t quantile_count;   /**< Number of `quantiles`. */
} fvm_call_options;

/** An initializer for the defaults: no margins, all trees. */
#define FVM_CALL_OPTIONS_INIT \
  { sizeof(fvm_call_options), NULL, 0, 0, FVM_TYPE_FLOAT32, 0, 10.0, 0, 0, 0, 0, NULL, 0, NULL, 0 }

/** An initializer for no rows. */
#define FVM_ROWS_INIT                                                                                        \
  {                                                                                                          \
    sizeof(fvm_rows), FVM_ROWS_DENSE, FVM_TYPE_FLOAT32, 0, 0, NULL, 0, 0, NULL, NULL, 0, FVM_ABSENT_MISSING, \
        0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL                                                              \
  }

/** An initializer for contiguous row-major rows (C order). */
#define FVM_DENSE_ROWS(data, type, row_count, column_count)                                             \
  {                                                                                                     \
    sizeof(fvm_rows), FVM_ROWS_DENSE, (type), (row_count), (column_count), (data), 0, 0, NULL, NULL, 0, \
        FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL                                     \
  }

/** An initializer for contiguous column-major rows (Fortran order). */
#define FVM_COLUMN_MAJOR_ROWS(data, type, row_count, column_count)                                           \
  {                                                                                                          \
    sizeof(fvm_rows), FVM_ROWS_DENSE, (type), (row_count), (column_count), (data), 1, FVM_STRIDE(row_count), \
        NULL, NULL, 0, FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL                           \
  }

/** An initializer for sparse rows. Features that a row does not list are missing. */
#define FVM_CSR_ROWS(offsets, columns, data, type, row_count, value_count)                      \
  {                                                                                             \
    sizeof(fvm_rows), FVM_ROWS_CSR, (type), (row_count), 0, (data), 0, 0, (offsets), (columns), \
        (value_count), FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL              \
  }

/** An initializer for contiguous row-major rows of float32 on device 0, for its default stream. */
#define FVM_DEVICE_ROWS(data, row_count, column_count)                                                    \
  {                                                                                                       \
    sizeof(fvm_rows), FVM_ROWS_DEVICE, FVM_TYPE_FLOAT32, (row_count), (column_count), (data), 0, 0, NULL, \
        NULL, 0, FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL                              \
  }

/** An initializer for columns: an array of fvm_column, one for each feature. */
#define FVM_COLUMN_ROWS(columns, row_count, column_count)                                               \
  {                                                                                                     \
    sizeof(fvm_rows), FVM_ROWS_COLUMNS, FVM_TYPE_FLOAT32, (row_count), (column_count), (columns), 0, 0, \
        NULL, NULL, 0, FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, NULL                      \
  }

/** An initializer for a struct array of Arrow and its schema. Columns that the model does not have are errors. */
#define FVM_ARROW_ROWS(array, schema)                                                       \
  {                                                                                         \
    sizeof(fvm_rows), FVM_ROWS_ARROW, FVM_TYPE_FLOAT32, 0, 0, (array), 0, 0, NULL, NULL, 0, \
        FVM_ABSENT_MISSING, 0, NULL, 0, 0, 0, FVM_EXTRA_ERROR, (schema)                     \
  }

/** The vendors of GPUs. */
typedef int32_t fvm_gpu_vendor;
enum {
  FVM_GPU_CUDA = 0, /**< NVIDIA, through libforestvm_cuda.so. */
  FVM_GPU_HIP = 1   /**< AMD, through libforestvm_hip.so. */
};

/** Options for opening a program on a GPU. Begin with FVM_GPU_OPTIONS_INIT, then change fields. A later
 * version may have more fields, as with fvm_open_options. */
typedef struct fvm_gpu_options {
  size_t size;                   /**< sizeof(fvm_gpu_options) when the caller was compiled. */
  fvm_gpu_vendor vendor;         /**< FVM_GPU_CUDA or FVM_GPU_HIP. */
  int32_t device;                /**< Ordinal of the device, as the vendor counts. */
  fvm_verification verification; /**< FVM_VERIFY_FULL or FVM_VERIFY_TRUST. */
} fvm_gpu_options;

/** An initializer for the defaults: the first CUDA device, full verification. */
#define FVM_GPU_OPTIONS_INIT \
  { sizeof(fvm_gpu_options), FVM_GPU_CUDA, 0, FVM_VERIFY_FULL }

/** Returns the library's version, "major.minor.patch". It is never NULL and lives as long as the library. */
FVM_API const char* fvm_version(void);

/**
 * Returns what went wrong in the calling thread's last call that did not return FVM_OK: the function, the
 * place in the input where there is one, what was found and what was expected. The text is UTF-8 as far as
 * the paths in it are. It is empty before the first failure, and calls that succeed leave it alone. It is
 * never NULL, and valid until the thread's next failure or its end.
 */
FVM_API const char* fvm_last_error(void);

/**
 * Opens the program file at `path`, a null-terminated path as the system takes it. The file is mapped, not
 * read: it may be deleted or renamed, but must not be changed, before the program and its contexts are gone.
 * A NULL `options` means FVM_OPEN_OPTIONS_INIT. On success `*program` must be closed with fvm_program_close;
 * on failure it is NULL.
 *
 * FVM_REFUSED: the file is not a program, is damaged, has a format that this version does not read, or is for a
 * GPU (see fvm_program_open_gpu). FVM_ENVIRONMENT: the file cannot be read, this CPU lacks the target, memory
 * or threads ran out. FVM_USAGE: a null argument, an unknown target, options that make no sense.
 */
FVM_API fvm_status fvm_program_open(const char* path, const fvm_open_options* options, fvm_program** program);

/**
 * Opens the program whose file's `size` bytes begin at `image`, with any alignment. The bytes are copied:
 * they may be freed or changed when the call returns. Otherwise like fvm_program_open.
 */
FVM_API fvm_status fvm_program_open_memory(const void* image, size_t size, const fvm_open_options* options,
                                           fvm_program** program);

/**
 * Opens a program as fvm_program_open_memory does, but without a copy: the bytes must begin at a multiple of 64, and
 * must neither change nor be freed before release(user) is called. It is called exactly once: when the program and all
 * its contexts are closed, in the thread that closes the last of them; if opening fails, before this function returns.
 * `release` may be NULL if the bytes outlive them all. FVM_USAGE: also bytes that do not begin at a multiple of 64.
 */
FVM_API fvm_status fvm_program_open_borrowed(const void* image, size_t size, void (*release)(void* user),
                                             void* user, const fvm_open_options* options,
                                             fvm_program** program);

/**
 * Opens a program on a GPU: its model was compiled with a schedule for GPUs. A NULL `options` means
 * FVM_GPU_OPTIONS_INIT. The vendor's library is loaded from the folder that the environment variable
 * FORESTVM_PLUGINS names, or else from beside this library or the calling program (or the folder of libraries
 * there), or else from where the loader looks. Contexts and predictions work as with other programs: rows of the
 * host are copied to the GPU and results back. This program does not encode rows; a program for the host that has
 * the same encoder does. Otherwise like fvm_program_open and fvm_program_open_memory.
 *
 * FVM_REFUSED: also a program for the host, launches larger than the GPU allows, a layout without a kernel.
 * FVM_ENVIRONMENT: also no such library, driver or device, or too little of its memory.
 */
FVM_API fvm_status fvm_program_open_gpu(const char* path, const fvm_gpu_options* options,
                                        fvm_program** program);
FVM_API fvm_status fvm_program_open_gpu_memory(const void* image, size_t size, const fvm_gpu_options* options,
                                               fvm_program** program);

/**
 * Sets `*count` to the number of a vendor's GPUs, which is more than 0. FVM_ENVIRONMENT: there is none, or no
 * library or driver for them. FVM_USAGE: an unknown vendor, a null `count`.
 */
FVM_API fvm_status fvm_gpu_count(fvm_gpu_vendor vendor, uint32_t* count);

/**
 * Closes a program. Its contexts keep working and keep what they need of it alive. NULL is allowed and does
 * nothing. No other call may be using this handle. FVM_USAGE: not a program.
 */
FVM_API fvm_status fvm_program_close(fvm_program* program);

/**
 * Sets the shape of a program: the features of a row, the raw scores of a row, and the trees. Each of the
 * three pointers may be NULL. FVM_USAGE: not a program.
 */
FVM_API fvm_status fvm_program_shape(const fvm_program* program, uint32_t* num_features,
                                     uint32_t* num_outputs, uint32_t* num_trees);

/**
 * Sets `*width` to the number of values in a row's prediction of this kind: the output of `row_count` rows has
 * row_count x `*width` elements in C order. It is 0 if the program cannot give this kind, and for leaves of a
 * program without trees. FVM_USAGE: not a program, an unknown kind, a null `width`.
 */
FVM_API fvm_status fvm_program_width(const fvm_program* program, fvm_output output, uint32_t* width);

/** Sets `*width` as fvm_program_width does, for a call with options, which may change the width: rounds, stages,
 * ensembles, features and quantiles. NULL `options` means FVM_CALL_OPTIONS_INIT. The width is 0 also if the options
 * make no sense. */
FVM_API fvm_status fvm_call_width(const fvm_program* program, fvm_output output,
                                  const fvm_call_options* options, uint32_t* width);

/** The texts of a program. */
typedef int32_t fvm_text;
enum {
  FVM_TEXT_FORMAT = 0,     /**< The format of the model's file, e.g. "xgboost-json". */
  FVM_TEXT_TRAINER = 1,    /**< The trainer, e.g. "xgboost". */
  FVM_TEXT_VERSION = 2,    /**< The trainer's version; empty if the file does not say it. */
  FVM_TEXT_OBJECTIVE = 3,  /**< The trainer's objective. */
  FVM_TEXT_SCHEDULE = 4,   /**< The schedule with which the model was compiled. */
  FVM_TEXT_FINGERPRINT = 5 /**< 16 hexadecimal digits that identify the model. */
};

/**
 * Sets `*text` to a text of the program and `*size` to its length in bytes. It is UTF-8 as far as the model's file is,
 * may contain null bytes, and does not end with one. It lives as long as `program` is open. FVM_USAGE: not a program,
 * an unknown text, a null pointer.
 */
FVM_API fvm_status fvm_program_text(const fvm_program* program, fvm_text which, const char** text,
                                    size_t* size);

/**
 * Sets the number of feature names (the number of features, or 0 if the model file has no names) and of class
 * labels (0 if the model file has none). Each of the two pointers may be NULL. FVM_USAGE: not a program.
 */
FVM_API fvm_status fvm_program_name_counts(const fvm_program* program, uint32_t* feature_names,
                                           uint32_t* class_labels);

/** Sets the name of a feature, as fvm_program_text does. FVM_USAGE: also a number that is not below the count. */
FVM_API fvm_status fvm_program_feature_name(const fvm_program* program, uint32_t feature, const char** name,
                                            size_t* size);

/** Sets a class label, as fvm_program_text does. FVM_USAGE: also a number that is not below the count. */
FVM_API fvm_status fvm_program_class_label(const fvm_program* program, uint32_t label, const char** text,
                                           size_t* size);

/**
 * Sets `*count` to the number of categories of a feature that have names, or to 0 if none has; their codes are 0 to
 * `*count` - 1. Sets `*unseen` to the number that stands for a text that is not among the names: NaN if such a text is
 * missing; -1 if the trainer refuses it, or if there are no names. FVM_USAGE: not a program, not a feature of the
 * model, a null pointer.
 */
FVM_API fvm_status fvm_program_categories(const fvm_program* program, uint32_t feature, uint32_t* count,
                                          double* unseen);

/** Sets the name of a category, as fvm_program_text does. FVM_USAGE: also a number that is not below the count. */
FVM_API fvm_status fvm_program_category_name(const fvm_program* program, uint32_t feature, uint32_t category,
                                             const char** name, size_t* size);

/**
 * Sets `*code` to the number that stands for a category in columns of codes (fvm_column::categories), given its name of
 * `size` bytes: the code of the category; the number for unseen texts if it is not among the names; the hash code of
 * the text if the model compares the feature as text. FVM_REFUSED: the trainer refuses such a text. FVM_USAGE: not a
 * program, not a feature of the model, a feature without names that is not compared as text, a null pointer.
 */
FVM_API fvm_status fvm_program_category_code(const fvm_program* program, uint32_t feature, const char* name,
                                             size_t size, double* code);

/**
 * Returns a description of what runs, for people: backend, CPU target, threads. The text lives as long as
 * `program` is open. NULL if it is not a program.
 */
FVM_API const char* fvm_program_description(const fvm_program* program);

/**
 * Creates a context for calls to `program`; each thread that predicts needs its own. On success `*context`
 * must be destroyed with fvm_context_destroy, before or after its program is closed, in any thread; on failure
 * it is NULL. FVM_USAGE: not a program, a null `context`. FVM_ENVIRONMENT: memory ran out.
 */
FVM_API fvm_status fvm_context_create(const fvm_program* program, fvm_context** context);

/** Destroys a context. NULL is allowed and does nothing. No call may be using it. FVM_USAGE: not a context. */
FVM_API fvm_status fvm_context_destroy(fvm_context* context);

/**
 * Predicts rows of any kind. Writes row_count x width numbers of `type` in C order to `out`, which has room
 * for at least as many: `capacity` numbers, not bytes. fvm_program_width gives the width.
 *
 * Raw scores and values can be written as FVM_TYPE_FLOAT32 or FVM_TYPE_FLOAT64. A model with float64 scores
 * (such as LightGBM's) gives them unchanged as float64, and rounded once as float32. Classes and leaves can be
 * written as FVM_TYPE_INT32 or FVM_TYPE_INT64. The number of rows may be 0 (then `out` may be NULL).
 *
 * With one thread, a call allocates nothing and takes no lock once the context has answered a call for the
 * same output and type with as many rows of the same kind and type. Rows that a program cannot read where
 * they are, for example float64 or column-major ones, are converted a block at a time: memory does not grow
 * with the number of rows.
 *
 * Encoded rows: a program with several plans uses the plan for this number of rows if its walks read codes
 * alone, otherwise the next such plan.
 *
 * Rows on a device: `out` is memory of the same GPU; classes are FVM_TYPE_INT64, leaves are FVM_TYPE_INT32.
 * The call returns when the work is queued on the rows' stream. Rows and results must stay where they are
 * until the stream has done that work. The calls of a context run one after the other; when a call uses
 * another stream than the call before, the host waits for that call. A failure of the GPU may be reported by
 * a later call. The caller may capture the stream into a graph if the context has made a call with as many
 * rows before. The graph uses the context's memory: the context must outlive it, must make no larger call,
 * and must make no call while the graph runs.
 *
 * FVM_USAGE: a null pointer; not a context, or one that another call is using; rows whose fields make no
 * sense or do not fit the program; a type that would lose digits of the output; an output that is too small;
 * CSR offsets that descend or leave the values, or a column that the model does not have (the message names
 * the row); columns or an Arrow array that contradict themselves or lack a feature (the message names the
 * column); rows on another device, or on a device for a program of the host; a captured stream without such
 * an earlier call. FVM_REFUSED: the model has no classes; an integer that no float64 is equal to, where the
 * model compares in float64, or a category that the trainer refuses (the message names the row and the
 * column); an Arrow column of a type that is not supported; codes of another encoder, or a program whose plans
 * all read the rows' values; rows or results on a device that would have to be converted; rows on a device for
 * a model that takes zeros for missing values, or whose thresholds float32 cannot tell apart.
 * FVM_ENVIRONMENT: memory ran out, or the GPU failed.
 */
FVM_API fvm_status fvm_predict(fvm_context* context, const fvm_rows* rows, fvm_output output, fvm_type type,
                               void* out, size_t capacity);

/**
 * Predicts as fvm_predict does, with options; NULL `options` means FVM_CALL_OPTIONS_INIT.
 *
 * Base margins are XGBoost's base_margin, which replaces the base score, and LightGBM's init_score: sums of rows
 * start from them, as LightGBM's own scores of training rows do (its predict takes none). They are rounded to float32
 * where the model's scores are float32. Contributions and interactions take them, too: the expected score of a row, the
 * last number for each output, is then its margin and the mean of the trees.
 *
 * Early stop is LightGBM's pred_early_stop: after every early_stop_every rounds a row gets no more trees if
 * 2 x |raw| (one output) or the distance of the best raw score to the second is above early_stop_margin; its raw scores
 * are the sums so far. The program must have the rounds (forestvm compile --with early-stop).
 *
 * Only trees of rounds [rounds_begin, rounds_end) count; not in leaf numbers, quantiles or approximate contributions.
 * The program must have the rounds (--with rounds). Others are not walked, unless the schedule has orderTrees.
 *
 * FVM_USAGE: also a margin that is not finite, or beyond float32 where scores are float32 (the message names row and
 * output); margins of another shape than the raw scores; options for leaves; an early_stop_margin below 0 or NaN;
 * rounds that are empty, reversed or beyond the program's.
 * FVM_REFUSED: also margins for a model of another trainer, for a model of averaged trees, for scores of a program
 * whose sums are exact, or for approximate contributions of a program that an earlier forestvm compiled; early stop for
 * a model whose rows get all trees in LightGBM; rounds of a model whose trees are no rounds of boosting; early stop,
 * rounds, and outputs of trees and stages for a program that does not keep leaves; on a GPU a choice of features, and
 * rounds of a program that adds trees in another order than the model's without keeping leaves; for rows in a GPU's
 * memory also quantiles, margins, and rounds of contributions and interactions.
 */
FVM_API fvm_status fvm_predict_with(fvm_context* context, const fvm_rows* rows, fvm_output output,
                                    fvm_type type, const fvm_call_options* options, void* out,
                                    size_t capacity);

/**
 * Predicts any output but classes and leaf numbers, which are integers, of row-major float32 rows as float32: fvm_predict
 * for the most common call. The values of a row are contiguous; `row_stride` is the distance of two rows in values, at least
 * the model's number of features.
 */
FVM_API fvm_status fvm_predict_f32(fvm_context* context, const float* rows, size_t row_count,
                                   size_t row_stride, fvm_output output, float* out, size_t capacity);

/**
 * Sets `*byte_count` to the room that fvm_encode needs for `row_count` rows, including 64 bytes behind the
 * codes that may be read. FVM_USAGE: not a program, a null `byte_count`, more rows than memory holds.
 */
FVM_API fvm_status fvm_encoded_size(const fvm_program* program, size_t row_count, size_t* byte_count);

/**
 * Encodes rows of any kind in the host's memory. Writes the codes to `out`, which has room for `capacity`
 * bytes, and describes them in `*encoded`, for fvm_predict. Initialize `*encoded` with FVM_ROWS_INIT; the
 * description is valid as long as `out` is. Any program with the same encoder can predict the encoded rows, to
 * the same bits, for example the same program after it was opened again. Encoding pays when rows are predicted
 * more than once, or on another machine than the one that has their values.
 *
 * FVM_REFUSED: the program reads the rows' values (compile its model with a schedule that has encode(u8)), or
 * it is on a GPU; a value that fvm_predict would refuse. FVM_USAGE: rows that fvm_predict would not accept,
 * rows that are encoded already, a null `encoded`, too little room.
 */
FVM_API fvm_status fvm_encode(fvm_context* context, const fvm_rows* rows, uint8_t* out, size_t capacity,
                              fvm_rows* encoded);

#ifdef __cplusplus
}
#endif

#endif
