import type { Json } from '../../../src/engine/base/json.ts'
import { CANARY } from './answer-rules.ts'
import { mutated, strange } from './json-tree.ts'
import { fc } from '../../support/fast-check.ts'

/** Octets a header may hold: everything but CR, LF and NUL. */
const octets = fc.uint8Array({ maxLength: 200 }).map((bytes) =>
  Buffer.from(bytes)
    .toString('latin1')
    .replace(/[\r\n\0]/g, '.'),
)

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64')
const base64url = (text: string): string => Buffer.from(text, 'utf8').toString('base64url')

/** Valid and invalid encodings of a text as a header. */
function framed(text: fc.Arbitrary<string>, right: (text: string) => string): fc.Arbitrary<string> {
  const wrong = fc.constantFrom<(text: string) => string>(
    base64,
    base64url,
    (plain) => plain.replace(/[^\x20-\x7e]/g, '?'),
    (plain) => `${right(plain)}=`,
    (plain) => right(plain).slice(0, -1),
    (plain) => right(plain).slice(1),
    (plain) => ` ${right(plain)} `,
    (plain) => `${right(plain)}, ${right(plain)}`,
    (plain) => right(plain).replace(/.{60}/g, '$& '),
    (plain) => base64(right(plain)),
    (plain) => base64(`\ufeff${plain}`),
    (plain) => Buffer.from(plain, 'utf16le').toString('base64'),
    (plain) => encodeURIComponent(right(plain)),
    (plain) => `"${right(plain)}"`,
  )
  return fc.oneof(
    { weight: 4, arbitrary: text.map(right) },
    { weight: 1, arbitrary: fc.tuple(text, wrong).map(([plain, frame]) => frame(plain)) },
  )
}

const junk = fc.oneof(
  octets,
  fc.constantFrom('', ' ', '=', '====', 'A', 'AA==', CANARY, '%', ',', 'null', 'bnVsbA=='),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.integer({ min: 1, max: 40_000 }).map((length) => 'A'.repeat(length)),
)

/** Values of PAYMENT-SIGNATURE or X-PAYMENT derived from a valid one. */
export function x402Values(payload: Json): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: framed(mutated(payload), base64) },
    { weight: 1, arbitrary: framed(strange, base64) },
    { weight: 1, arbitrary: junk },
  )
}

/** Values of Authorization derived from a well-formed credential. */
export function authorizationValues(credential: Json): fc.Arbitrary<string> {
  const schemes = fc.oneof(
    { weight: 6, arbitrary: fc.constant('Payment ') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('payment ', 'PAYMENT  ', 'Payment\t', 'Payment', 'Payment,', ''),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom('Basic ', 'Bearer ', 'Bearer x, Payment ', 'Payment Payment ', '\u00a0'),
    },
  )
  const values = fc.oneof(
    { weight: 8, arbitrary: framed(mutated(credential), base64url) },
    { weight: 1, arbitrary: framed(strange, base64url) },
    { weight: 1, arbitrary: junk },
  )
  return fc.tuple(schemes, values).map((parts) => parts.join(''))
}

/** Values of the header of API keys, or the token after `Bearer`, that are not the key but may look like it. */
export function wrongKeys(key: string): fc.Arbitrary<string> {
  const changed = fc.constantFrom<(key: string) => string>(
    (text) => text.slice(0, -1),
    (text) => text.slice(1),
    (text) => `${text}k`,
    (text) => text.toUpperCase(),
    (text) => `${text}, ${text}`,
    (text) => `"${text}"`,
    (text) => `Bearer ${text}`,
    (text) => text.replace('k', '\u00e9'),
    base64,
    encodeURIComponent,
    (text) => text.repeat(1_000),
  )
  const near = fc
    .tuple(changed, fc.string({ maxLength: 5 }))
    .map(([change, more]) => change(key + more.replace(/[^!-~]/g, '')))
  return fc.oneof(near, junk).filter((value) => value.trim() !== key)
}
