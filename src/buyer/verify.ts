import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { UsageError } from '../command-line/usage-error.ts'
import { clean, cleanText } from '../command-line/printable.ts'
import type { JsonObject } from '../engine/base/json.ts'
import type { BuyerCall } from './buyer-command.ts'
import { type CheckedReceipt, verifyReceipt } from './receipts/verify-receipt.ts'

/** JWS in compact serialization, wherever it stands. */
const JWS = /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+/g

const REFUSED = 1

/** Verifies every signed receipt in a text, and shows what each states. */
export async function verify({ positionals, flags, terminal }: BuyerCall): Promise<number> {
  const [place] = positionals
  if (place === undefined)
    throw new UsageError(
      'missing argument: a receipt, or a file that has one, such as the output of pay --json',
    )
  const receipts = receiptsIn(existsSync(place) ? readFileSync(place, 'utf8') : place)
  if (receipts.length === 0) throw new UsageError(`there is no receipt in ${place}`)
  const file = flags.text('answer')
  const answer = file === undefined ? undefined : readAnswer(file)
  const checked: CheckedReceipt[] = []
  for (const each of receipts) {
    const found = await verifyReceipt(each)
    checked.push(answer === undefined ? found : matched(found, answer))
  }
  const isMatched =
    answer === undefined || checked.some((each) => each.kind === 'verified' && each.form === 'ratecard')
  if (flags.given('json')) terminal.out(JSON.stringify(checked, cleanText, 2))
  else for (const each of checked) terminal.out(textOf(each))
  if (!isMatched) terminal.err('no receipt here states the digest of an answer')
  return isMatched && checked.every(({ kind }) => kind === 'verified') ? 0 : REFUSED
}

/** Also those in the header of an answer, which is base64. */
function receiptsIn(text: string): string[] {
  const found = text.match(JWS) ?? Buffer.from(text, 'base64').toString('utf8').match(JWS) ?? []
  return [...new Set(found)]
}

function readAnswer(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch {
    throw new UsageError(`--answer names a file that cannot be read: ${file}`)
  }
}

/** Whether a Ratecard receipt is that of these bytes; others state nothing about the answer. */
function matched(checked: CheckedReceipt, answer: Buffer): CheckedReceipt {
  if (checked.kind === 'refused' || checked.form === 'x402') return checked
  const { payment, answer: stated } = checked.claims
  const other = { kind: 'refused', reason: 'it is the receipt of another answer' } as const
  if (typeof payment !== 'string') return other
  const digest = hash('sha256', Buffer.concat([Buffer.from(`${payment}\n`), answer]), 'base64url')
  return hash('sha256', digest, 'base64url') === stated ? checked : other
}

const TITLES = { x402: 'receipt of x402', ratecard: 'Ratecard receipt' } as const

function textOf(checked: CheckedReceipt): string {
  if (checked.kind === 'refused') return `not verified: ${clean(checked.reason)}`
  const { form, signer, claims } = checked
  return [`verified: ${TITLES[form]}, signed by ${clean(signer)}`, ...rowsOf(claims)].join('\n')
}

function rowsOf(claims: JsonObject): string[] {
  const names = Object.keys(claims)
  const width = Math.max(...names.map(({ length }) => length))
  return Object.entries(claims).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `  ${clean(name).padEnd(width)}  ${clean(text)}`
  })
}
