import { readFileSync } from 'node:fs'
import { countrySpecs } from 'ibantools'
import t from 'tap'
import { parse } from 'yaml'
import { checkIban } from '../../../../../../src/service/handlers/util/finid/iban.ts'

interface Published {
  readonly registry: readonly string[]
  readonly partial: readonly string[]
  readonly borrowed: readonly string[]
  readonly sepa: readonly string[]
}

const published: Published = parse(
  readFileSync(new URL('../../../../../fixtures/authority/iban.yaml', import.meta.url), 'utf8'),
)
const examples = [...published.registry, ...published.partial]

/** ISO 7064 MOD 97-10 computed here and not by the library: the remainder over the rearranged digits is 1. */
function remainder(iban: string): bigint {
  const rearranged = `${iban.slice(4)}${iban.slice(0, 4)}`
  return BigInt(Array.from(rearranged, (character) => parseInt(character, 36)).join('')) % 97n
}

/** The next digit in place of the last one, or the next letter. */
function mistyped(iban: string): string {
  const last = iban.slice(-1)
  const next = /\d/.test(last) ? String((Number(last) + 1) % 10) : last === 'A' ? 'B' : 'A'
  return `${iban.slice(0, -1)}${next}`
}

t.test('lists every country with an IBAN, each with an example', async (t) => {
  const known = Object.entries(countrySpecs).flatMap(([country, { chars }]) => (chars ? [country] : []))
  t.same([...examples.map((iban) => iban.slice(0, 2)), ...published.borrowed].toSorted(), known.toSorted())
})

t.test('accepts the example that each country publishes', async (t) => {
  for (const iban of examples) {
    t.equal(remainder(iban), 1n, `${iban} is published rightly`)
    const spaced = iban.replaceAll(/(.{4})(?=.)/g, '$1 ')
    t.match(
      checkIban(spaced.toLowerCase()),
      { valid: true, country: iban.slice(0, 2), bban: iban.slice(4), formatted: spaced, errors: [] },
      iban,
    )
  }
})

t.test('finds one wrong character, two swapped ones, one too few and one too many', async (t) => {
  for (const iban of examples) {
    t.match(checkIban(mistyped(iban)), { valid: false, bban: null }, `${iban} mistyped`)
    const check = iban.slice(2, 4)
    const swapped = `${iban.slice(0, 2)}${check.slice(1)}${check.slice(0, 1)}${iban.slice(4)}`
    if (swapped !== iban)
      t.match(checkIban(swapped), { valid: false }, `${iban} with its check digits swapped`)
    for (const wrong of [iban.slice(0, -1), `${iban}0`]) {
      const { valid, errors } = checkIban(wrong)
      t.equal(valid, false, wrong)
      t.ok(Array.isArray(errors) && errors.includes('wrong_length'), wrong)
    }
  }
})

t.test('finds a letter where the country has digits, even when the check digits agree', async (t) => {
  for (const iban of ['DE89370400440532013000', 'AT611904300234573201', 'BE68539007547034']) {
    const lettered = `${iban.slice(0, 2)}00${iban.slice(4, -1)}A`
    const check = String(98n - remainder(lettered)).padStart(2, '0')
    const forged = `${lettered.slice(0, 2)}${check}${lettered.slice(4)}`
    t.equal(remainder(forged), 1n)
    t.match(checkIban(forged), { valid: false, errors: ['wrong_format'] }, forged)
  }
})

t.test('states membership in SEPA as the European Payments Council does', async (t) => {
  for (const iban of examples) {
    const country = iban.slice(0, 2)
    t.equal(checkIban(iban)['sepa'], published.sepa.includes(country), country)
  }
})
