def write_report(plan, root, folder):
    return []
