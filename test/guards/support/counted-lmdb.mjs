/*
 * LMDB that counts its commits and kills the process at one of them. What is wrapped is the library's, so that nothing
 * depends on who calls it.
 *
 * Told over the channel of the process: { arm: n, cut } begins to count at 0 and kills at the n-th commit (0: never), before
 * it is begun or when it is on disk and nobody has been told. Tells { armed: count so far } and { commit: n }.
 */
import { open as openReal } from 'lmdb'

export * from 'lmdb'

let count = 0
let target = 0
let cut = 'before'
let armed = false
/** Writes inside of a transaction are committed with it. */
let inside = 0
let underWay = 0
let waiting

const tell = (message) => process.send?.(message)

process.on('message', ({ arm, cut: where }) => {
  const begin = () => {
    tell({ armed: count })
    ;[count, target, cut, armed] = [0, arm, where, true]
  }
  if (underWay === 0) begin()
  else waiting = begin
})
process.channel?.unref()

const WRITES = [
  'transaction',
  'put',
  'remove',
  'ifVersion',
  'ifNoExists',
  'batch',
  'putSync',
  'removeSync',
  'clearAsync',
]
const wrapped = new WeakSet()

export function open(...args) {
  const root = openReal(...args)
  wrap(Object.getPrototypeOf(root))
  return root
}

/** The library makes a class for each store that is opened. */
function wrap(prototype) {
  if (wrapped.has(prototype)) return
  wrapped.add(prototype)
  for (const name of WRITES) {
    const original = prototype[name]
    prototype[name] = function (...args) {
      if (inside > 0) return original.apply(this, args)
      const mine = armed ? (count += 1) : 0
      const hit = mine > 0 && mine === target
      if (hit && cut === 'before') return die()
      underWay += 1
      const done = original.apply(
        this,
        args.map((each) => (typeof each === 'function' ? within(each) : each)),
      )
      if (typeof done?.then !== 'function') {
        ended()
        return hit ? die() : done
      }
      done.then(ended, ended)
      return hit ? done.then(die) : done
    }
  }
}

function within(callback) {
  return (...args) => {
    inside += 1
    try {
      return callback(...args)
    } finally {
      inside -= 1
    }
  }
}

function ended() {
  underWay -= 1
  if (underWay > 0 || waiting === undefined) return
  waiting()
  waiting = undefined
}

function die() {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}
