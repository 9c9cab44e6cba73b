/** `1 route`, `2 routes`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** What settings that are missing come to: `A and B are set`. */
export function areSet(names: readonly string[]): string {
  return `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} set`
}

/** A table in plain text: every column as wide as its widest cell, the last one as it comes. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = new Map<number, number>()
  for (const row of rows)
    for (const [column, cell] of row.entries())
      widths.set(column, Math.max(widths.get(column) ?? 0, cell.length))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths.get(column) ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
