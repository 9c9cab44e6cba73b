import { type RootDatabase } from 'lmdb'
import type { SchemeState, SchemeStateChange } from '../scheme-state.ts'

type StoredState = Omit<SchemeState, 'name'>

/** What schemes keep, by name. `change` is called in a transaction. */
export function openStates(root: RootDatabase) {
  const states = root.openDB<StoredState, string>({ name: 'states', encoding: 'json' })
  return {
    get: (name: string): SchemeState => ({ name, ...(states.get(name) ?? { text: '', version: 0 }) }),
    list: (prefix: string): SchemeState[] =>
      Array.from(states.getRange({ start: prefix, end: prefix + AFTER }), toState),
    change: ({ previous: { name, version }, next }: SchemeStateChange): void => {
      void (next === undefined ? states.remove(name) : states.put(name, { text: next, version: version + 1 }))
    },
  }
}

/** Sorts after every name: those are of ASCII characters. */
const AFTER = '\uffff'

function toState({ key: name, value }: { readonly key: string; readonly value: StoredState }): SchemeState {
  return { name, ...value }
}
