import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: unknown = runInNewContext('gc')

/** Frees all memory that nothing refers to. */
export function collectGarbage(): void {
  if (typeof collect !== 'function') throw new Error('no garbage collector')
  Reflect.apply(collect, undefined, [])
}
