import type { Row } from './database.ts'

/** Columns as both engines give them: one has large numbers as text. */
export function readNumber(row: Row | undefined, column: string): number {
  const value = row?.[column]
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number === 'number' && Number.isFinite(number)) return number
  throw new Error(`the memory store gave no number for ${column}`)
}

export function readText(row: Row | undefined, column: string): string {
  const value = row?.[column]
  if (typeof value === 'string') return value
  throw new Error(`the memory store gave no text for ${column}`)
}

export function readTexts(row: Row, column: string): readonly string[] {
  const value = row[column]
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw new Error(`the memory store gave no list for ${column}`)
}

export function readTime(row: Row | undefined, column: string): Date {
  const value = row?.[column]
  if (value instanceof Date) return value
  throw new Error(`the memory store gave no time for ${column}`)
}
