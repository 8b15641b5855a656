def evaluation_page(document): return ""
