import { InvalidParameter, isJsonObject } from 'ratecard/handler'
import type { JsonObject } from 'ratecard/handler'
import type { HandlerWithPreview, Parameters } from '../catalog.ts'
import { checkCardBin } from './finid/card.ts'
import { checkIban } from './finid/iban.ts'
import { checkRouting } from './finid/routing.ts'
import { checkVat } from './finid/vat.ts'

/** Raised when the same request gets another answer than before. */
const VERSION = '1.0.0'

type Identifier = keyof Parameters['util/finid']

const CHECKS: Readonly<Record<Identifier, (input: string) => JsonObject>> = {
  iban: checkIban,
  card_bin: checkCardBin,
  vat: checkVat,
  routing: checkRouting,
}

/**
 * Checks financial identifiers offline. Each one that is given is answered, valid or not: an invalid one is an answer,
 * too. The preview says whether each is valid, and its country or brand.
 */
export const finid: HandlerWithPreview<'util/finid'> = {
  async run(parameters) {
    const answers = mapChecks((name) => (parameters[name] === '' ? null : CHECKS[name](parameters[name])))
    const given = Object.values(answers).filter(isJsonObject)
    if (given.length === 0) {
      throw new InvalidParameter('iban', 'provide at least one of iban, card_bin, vat, routing')
    }
    const valid = given.filter((answer) => answer['valid'] === true)
    return {
      source: [{ name: 'computed', version: VERSION }],
      body: { ...answers, checks: { requested: given.length, valid: valid.length } },
    }
  },

  preview(body) {
    const answers = mapChecks((name) => {
      const answer = body[name]
      if (!isJsonObject(answer)) return null
      const shown = name === 'card_bin' ? 'brand' : 'country'
      return { valid: answer['valid'] ?? false, [shown]: answer[shown] ?? null }
    })
    return { ...answers, checks: body['checks'] ?? null }
  },
}

function mapChecks(
  answer: (name: Identifier) => JsonObject | null,
): Readonly<Record<Identifier, JsonObject | null>> {
  return {
    iban: answer('iban'),
    card_bin: answer('card_bin'),
    vat: answer('vat'),
    routing: answer('routing'),
  }
}
