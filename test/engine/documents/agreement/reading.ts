import t from 'tap'
import type { Catalog } from '../../../../src/engine/index.ts'
import type { Facts } from '../../../../src/engine/documents/document.ts'
import { servedTestimony } from '../../../../src/engine/documents/agreement/catalog-testimony.ts'
import { readDocument, SPEAKING } from '../../../../src/engine/documents/agreement/reading.ts'
import {
  compareTestimonies,
  tellDisagreement,
  type Testimony,
} from '../../../../src/engine/documents/agreement/testimony.ts'
import { compileHarbour, FACTS, HARBOUR, render } from '../../../support/documents.ts'

/** The harbour, selling one thing more. */
function harbourWith(summary: string, parameters = '', more = ''): Catalog {
  const route = `
  /paid/dice:
    price: 0.001
    handler: dice
    summary: ${JSON.stringify(summary)}
    category: ships
    ${more}
    parameters: {${parameters}}
    example: { value: 3 }
    sample: { path: /sample/dice }
`
  return compileHarbour(HARBOUR.replace('\nroutes:\n', `\nroutes:${route}`))
}

/** What the documents say, each after a change. */
function differences(
  catalog: Catalog,
  facts: Facts = FACTS,
  change: (text: string, name: string) => string = (text) => text,
): string[] {
  const said = SPEAKING.map((name): Testimony => {
    const reading = readDocument(name, name, change(render(name, catalog, facts), name))
    if (reading.kind !== 'says') throw new Error(`${name} is ${reading.kind}`)
    return reading.testimony
  })
  return compareTestimonies([
    servedTestimony(catalog, ({ operation }) => facts.available(operation)),
    ...said,
  ]).map(tellDisagreement)
}

const card =
  (from: string | RegExp, to: string) =>
  (text: string, name: string): string => {
    if (name !== 'agent-card') return text
    if (text.replace(from, to) === text) throw new Error(`the card says no ${from}`)
    return text.replace(from, to)
  }

t.test('the agent card names another price, place or skill than is sold', async (t) => {
  const harbour = compileHarbour()
  const path = '/paid/tides/{port}'
  t.strictSame(differences(harbour), [])
  t.strictSame(differences(harbour, FACTS, card('Price: 0.005000', 'Price: 0.004000')), [
    `${path}: price is 0.004000 in agent-card, and 0.005000 in catalog`,
  ])
  t.strictSame(differences(harbour, FACTS, card('Price: 0.005000 USD per call', 'Free')), [
    `${path}: price is free in agent-card, and 0.005000 in catalog`,
  ])
  t.strictSame(differences(harbour, FACTS, card('"id": "tides"', '"id": "waters"')), [
    `${path}: skill is waters in agent-card, and tides in catalog`,
  ])
  t.strictSame(differences(harbour, FACTS, card('"available": true', '"available": false')), [
    `${path}: available is no in agent-card, and yes in catalog`,
  ])
  t.strictSame(differences(harbour, FACTS, card(path, '/paid/ebb')), [
    '/paid/ebb: stands in agent-card, and not in catalog',
    `${path}: is missing in agent-card, and stands in catalog`,
  ])
})

t.test('an operator is warned of a card that says what holds', async (t) => {
  const closed: Facts = { ...FACTS, available: () => false }
  t.strictSame(differences(compileHarbour(), closed), [], 'nothing can be called')
  const tools: Facts = { ...FACTS, mcpServers: new Map([['log', 'https://log.example/mcp']]) }
  t.strictSame(differences(compileHarbour(), tools), [], 'a tool beside the address')
  const first = harbourWith(
    'Price: 9.00 USD per call. GET /paid/else',
    '',
    'skill: dice\n    settle: upfront',
  )
  t.strictSame(differences(first), [], 'prices in a summary')
})

t.test('an operator is warned of words that a catalog may well use', async (t) => {
  for (const summary of [
    'Rolls a die. Takes the best of three.',
    'Rolls a die. Takes the best of three, always. Preview',
    'Free preview of a roll, and then the roll',
  ]) {
    t.strictSame(differences(harbourWith(summary)), [], summary)
    t.strictSame(differences(harbourWith(summary, 'sides: { type: integer, default: 6 }')), [], summary)
  }
})

t.test('an operator is warned of values that a catalog may well use', async (t) => {
  for (const value of [
    '|',
    '\\|',
    ' ',
    '  x  y ',
    '`',
    'a `b`',
    '``|',
    'x, default ',
    'a. Takes b=c',
    'a, required',
  ]) {
    const text = JSON.stringify(value)
    const parameters = `q: { type: string, default: ${text}, example: ${text} }, rest: { type: string }`
    t.strictSame(differences(harbourWith('Rolls a die', parameters)), [], text)
    const shown = `q: { type: string, example: ${text} }, sides: { type: integer, required: true, example: 6 }`
    t.strictSame(differences(harbourWith('Rolls a die', shown)), [], `example ${text}`)
  }
})
