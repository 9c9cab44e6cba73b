/** What is sold through a route or a tool, by the id of its operation. */
export function soldName(operation: string): string {
  return `sold ${operation}`
}

/** What is given for nothing, by its path. */
export function freeName(path: string): string {
  return `free ${path}`
}

export function isSold(name: string): boolean {
  return name.startsWith('sold ')
}
