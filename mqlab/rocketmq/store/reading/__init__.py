"""The reading half of the store: its files are read and never changed, whether a store has them open or not.

Mirrors: what DefaultMessageStore reads when it loads. Arrow, Spark and the inspector read stores with it.

    checkpoint_format, index_table, torn_units, file_sizes, store_tree     what the files look like
    log_reader, queue_reader, index_reader ─▶ store_reader                  the parts, and the whole
    message_search, deep_check, store_problems                              questions across parts
"""
