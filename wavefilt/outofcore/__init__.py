"""Files larger than memory: memory budget, prefetching, staging through a device."""
