import { InvalidParameter, type PaymentFacts, type Source } from 'ratecard/handler'

/** Source of every answer that contains what a wallet has stored. */
export const SOURCE: readonly Source[] = [{ name: 'memory of this service' }]

const LONGEST_TAG = 64

/** What a database can hold; its text ends at a zero. */
export function validateText(parameter: string, text: string): string {
  if (text.includes('\0')) throw new InvalidParameter(parameter, `${parameter} must not contain U+0000`)
  return text
}

/** Without those that say nothing or twice the same. */
export function validateTags(tags: readonly string[] = []): readonly string[] {
  const trimmed = tags.map((tag) => validateText('tags', tag.trim())).filter((tag) => tag !== '')
  if (trimmed.some((tag) => Array.from(tag).length > LONGEST_TAG))
    throw new InvalidParameter('tags', `each tag should have at most ${LONGEST_TAG} characters`)
  return [...new Set(trimmed)]
}

/** The payer: the catalog lets no unpaid call through. */
export function payerOf(payment: PaymentFacts | undefined): PaymentFacts {
  if (payment === undefined) throw new Error('a memory belongs to who pays for it: the tool needs a price')
  return payment
}
