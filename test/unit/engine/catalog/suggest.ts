import t from 'tap'
import { didYouMean, suggest } from '../../../../src/engine/catalog/issue.ts'

const KEYS = [
  'price',
  'handler',
  'summary',
  'use_when',
  'parameters',
  'type',
  'minimum',
  'maximum',
  'max_items',
]

t.test('suggests the word that was meant for a misspelt one', async (t) => {
  const meant: readonly (readonly [string, string])[] = [
    ['pric', 'price'],
    ['prcie', 'price'],
    ['Price', 'price'],
    ['useWhen', 'use_when'],
    ['paramters', 'parameters'],
    ['parametres', 'parameters'],
    ['tpye', 'type'],
    ['max', 'maximum'],
    ['maxitems', 'max_items'],
    ['summery', 'summary'],
  ]
  for (const [written, key] of meant) t.equal(suggest(written, KEYS), key, written)
  t.equal(suggest('int', ['string', 'integer', 'number', 'boolean']), 'integer')
  t.equal(suggest('bool', ['string', 'integer', 'number', 'boolean']), 'boolean')
})

t.test('suggests only similar words', async (t) => {
  for (const word of ['colour', 'x', 'payments', 'url', '', 'ab'])
    t.equal(suggest(word, KEYS), undefined, word)
  t.equal(suggest('price', []), undefined)
})

t.test('suggests the nearest of several', async (t) => {
  t.equal(suggest('minimun', KEYS), 'minimum')
  t.equal(suggest('maximun', KEYS), 'maximum')
  t.equal(suggest('price', ['prices', 'price']), 'price')
})

t.test('formats the suggestion as the end of a sentence', async (t) => {
  t.equal(didYouMean('pric', KEYS), ' — did you mean "price"?')
  t.equal(didYouMean('colour', KEYS), '')
})
