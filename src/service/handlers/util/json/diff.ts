import { canonicalJson, isJsonObject } from 'ratecard/handler'
import type { Json, JsonObject } from 'ratecard/handler'
import { pointTo } from './pointer.ts'

/** Above this many comparisons two arrays are compared place by place: the answer is longer, still correct. */
const MAX_COMPARISONS = 250_000

/**
 * The JSON Patch (RFC 6902) that turns `before` into `after`; empty where both are equal. Elements that stay are found
 * by a longest common subsequence, so one insertion is one operation. Written here because known libraries take
 * exponential time on nested arrays.
 */
export function diff(before: Json, after: Json, path = ''): readonly JsonObject[] {
  if (Array.isArray(before) && Array.isArray(after)) return diffArrays(before, after, path)
  if (isJsonObject(before) && isJsonObject(after)) return diffObjects(before, after, path)
  return before === after ? [] : [{ op: 'replace', path, value: after }]
}

function diffObjects(before: JsonObject, after: JsonObject, path: string): readonly JsonObject[] {
  const removed = Object.keys(before)
    .filter((key) => !Object.hasOwn(after, key))
    .map((key) => ({ op: 'remove', path: pointTo(path, key) }))
  const others = Object.entries(after).flatMap(([key, value]) => {
    const at = pointTo(path, key)
    return Object.hasOwn(before, key)
      ? diff(before[key] ?? null, value, at)
      : [{ op: 'add', path: at, value }]
  })
  return [...removed, ...others]
}

/** While it runs, the array being patched is `after` up to `to` and `before` from `from`: every operation is at `to`. */
function diffArrays(before: readonly Json[], after: readonly Json[], path: string): readonly JsonObject[] {
  const operations: JsonObject[] = []
  let from = 0
  let to = 0
  for (const [keptFrom, keptTo] of [...unchanged(before, after), [before.length, after.length] as const]) {
    while (from < keptFrom && to < keptTo) {
      for (const operation of diff(before[from] ?? null, after[to] ?? null, pointTo(path, to))) {
        operations.push(operation)
      }
      from += 1
      to += 1
    }
    for (; from < keptFrom; from += 1) operations.push({ op: 'remove', path: pointTo(path, to) })
    for (; to < keptTo; to += 1) {
      operations.push({ op: 'add', path: pointTo(path, to), value: after[to] ?? null })
    }
    from += 1
    to += 1
  }
  return operations
}

type Pair = readonly [number, number]

/** Pairs of places that hold equal elements, both rising: what is alike at the ends, and between them the most there is. */
function unchanged(before: readonly Json[], after: readonly Json[]): readonly Pair[] {
  const a = before.map(canonicalJson)
  const b = after.map(canonicalJson)
  const shorter = Math.min(a.length, b.length)
  let head = 0
  while (head < shorter && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1
  const pairs: Pair[] = Array.from({ length: head }, (_, index) => [index, index])
  for (const [i, j] of commonSubsequence(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) {
    pairs.push([head + i, head + j])
  }
  for (let left = tail; left > 0; left -= 1) pairs.push([a.length - left, b.length - left])
  return pairs
}

function commonSubsequence(a: readonly string[], b: readonly string[]): readonly Pair[] {
  if (a.length * b.length > MAX_COMPARISONS) return []
  const width = b.length + 1
  // longest[i * width + j]: how much a from i on and b from j on have in common
  const longest = new Uint16Array((a.length + 1) * width)
  const at = (i: number, j: number): number => longest[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const pairs: Pair[] = []
  let i = 0
  let j = 0
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) pairs.push([i++, j++])
    else if (at(i + 1, j) >= at(i, j + 1)) i += 1
    else j += 1
  }
  return pairs
}
