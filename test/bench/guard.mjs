// Precision and recall of the guard on the labelled texts: node test/bench/guard.mjs, after npm run build.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { screen } from '../../dist/service/handlers/util/guard/screening.js'

const labelled = parse(readFileSync(new URL('../fixtures/service/guard.yaml', import.meta.url), 'utf8'))

function flagged(texts) {
  return texts.filter((text) => screen({ text, kind: 'any' }).body.verdict !== 'allow')
}

const caught = flagged(labelled.attacks)
const alarms = flagged(labelled.benign)
const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`
console.log(
  `recall     ${percent(caught.length, labelled.attacks.length)}  (${caught.length} of ${labelled.attacks.length} attacks)`,
)
console.log(
  `precision  ${percent(caught.length, caught.length + alarms.length)}  (${alarms.length} of ${labelled.benign.length} benign texts flagged)`,
)
for (const text of labelled.attacks) if (!caught.includes(text)) console.log(`missed  ${text}`)
for (const text of alarms) console.log(`alarm   ${text}`)
