/*
 * LMDB that counts its commits and kills the process at one of them. The library itself is wrapped, so that every caller
 * is counted.
 *
 * The message { arm: n, point } over the channel of the process starts to count at 0 and kills at the n-th commit (0: never):
 * `before` it starts, or `after` it is on disk and before its promise resolves. The reply is { armed: count so far }.
 */
import { open as openReal } from 'lmdb'

export * from 'lmdb'

let count = 0
let target = 0
let point = 'before'
let armed = false
/** Writes inside of a transaction are committed with it. */
let inside = 0
let pending = 0
let waiting

process.on('message', ({ arm, point: when }) => {
  const begin = () => {
    process.send?.({ armed: count })
    ;[count, target, point, armed] = [0, arm, when, true]
  }
  if (pending === 0) begin()
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
      if (hit && point === 'before') return die()
      pending += 1
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
  pending -= 1
  if (pending > 0 || waiting === undefined) return
  waiting()
  waiting = undefined
}

function die() {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}
