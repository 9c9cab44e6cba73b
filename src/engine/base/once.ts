/** Creates a value at its first use and keeps it, so that unused values do not slow down the start. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Like `once`, for a function that may fail: a failure is not kept, so the next call tries again. */
export function onceResolved<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((fault: unknown) => {
      made = undefined
      throw fault
    })
    return made
  }
}
