export function median(values) {
  const sorted = values.filter((value) => value !== undefined).sort((one, other) => one - other)
  if (sorted.length === 0) return undefined
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export function show(value, digits) {
  return value === undefined ? '–' : value.toFixed(digits)
}

/** Median, with the smallest and the largest figure. */
export function showRange(values, digits) {
  const known = values.filter((value) => value !== undefined && !Number.isNaN(value))
  if (known.length === 0) return '–'
  const [least, most] = [Math.min(...known), Math.max(...known)]
  return `${show(median(known), digits)} (${show(least, digits)} to ${show(most, digits)})`
}

/** Prints rows in columns: the first to the left, figures to the right. */
export function printTable(title, heads, rows) {
  const lines = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  console.log(`\n${title}`)
  for (const line of lines) {
    const cells = line.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    )
    console.log(`  ${cells.join('  ')}`)
  }
}
