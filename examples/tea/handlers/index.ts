import { Failure } from 'ratecard/handler'
import type { Handler, Handlers } from './catalog.ts'

const TEAS = new Map([
  ['sencha', { celsius: 75, seconds: 60 }],
  ['assam', { celsius: 95, seconds: 180 }],
])
function teaOf(leaf: string) {
  const tea = TEAS.get(leaf)
  if (tea === undefined) throw new Failure('not_found', `there is no tea called ${leaf}`)
  return tea
}

const brew: Handler<'tea/brew'> = async ({ leaf, cups }) => {
  return { source: [{ name: 'computed' }], body: { leaf, grams: 2 * cups, ...teaOf(leaf) } }
}
const blend: Handler<'tea/blend'> = async ({ leaves }) => {
  const celsius = Math.min(...leaves.map((leaf) => teaOf(leaf).celsius))
  return { source: [{ name: 'computed' }], body: { leaves, celsius } }
}

/** A missing handler is a compile error, and so is a parameter that the catalog does not declare. */
export const handlers = { 'tea/brew': brew, 'tea/blend': blend } satisfies Handlers
