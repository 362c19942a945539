"""Files larger than memory: read ahead, denoised in chunks and written behind, within a limit of memory.

`streaming` is the entry point, `memory_budget` plans what fits, `prefetch` reads and writes in threads, `file_rows` is
a file for the passes of `wavefilt.chunking`, and `device_staging` sends traces through the memory of a GPU.
"""
