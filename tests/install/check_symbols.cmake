# The runtime library exports exactly the functions of forestvm.h, and contains nothing of the frontend and the
# scheduler.
#   cmake -DRUNTIME=<libforestvm_runtime.so> -DNM=nm -DREADELF=readelf -DHEADER=<forestvm.h> -P check_symbols.cmake
execute_process(COMMAND ${NM} -D --defined-only ${RUNTIME} OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" shown "${table}")
list(TRANSFORM shown STRIP)
list(SORT shown)

file(READ ${HEADER} header)
string(REGEX MATCHALL "FVM_API [a-z_ *]+ fvm_[a-z0-9_]+\\(" declared "${header}")
list(TRANSFORM declared REPLACE ".* (fvm_[a-z0-9_]+)\\($" "\\1")
list(SORT declared)
if(NOT declared OR NOT shown STREQUAL declared)
  message(FATAL_ERROR "shown by the library:\n${shown}\ndeclared in the header:\n${declared}")
endif()

execute_process(COMMAND ${READELF} -d ${RUNTIME} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(dynamic MATCHES "NEEDED[^\n]*(libz|program_options)" OR NOT dynamic MATCHES "SONAME[^\n]*libforestvm_runtime\\.so\\.[0-9]")
  message(FATAL_ERROR "${dynamic}")
endif()
execute_process(COMMAND ${NM} -C ${RUNTIME} OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
if(NOT all MATCHES "forestvm::host_backend" OR all MATCHES "nlohmann|forestvm::(load_model|compile|parse_schedule)\\(")
  message(FATAL_ERROR "holds what it should not, or its symbols are stripped: ${RUNTIME}")
endif()
list(LENGTH shown count)
message("${count} functions: ${shown}")
