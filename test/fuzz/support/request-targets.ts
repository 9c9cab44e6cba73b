import type { Catalog } from '../../../src/engine/catalog/catalog.ts'
import { CANARY } from './answer-rules.ts'
import { fc } from '../../support/fast-check.ts'

const unreserved = fc.constantFrom(...'abcxyzABC019-._~'.split(''))
const pieces = fc.oneof(
  { weight: 4, arbitrary: unreserved },
  { weight: 2, arbitrary: fc.constantFrom(...'/;:@!$&\'()*+,=|\\^`{}"<>[]'.split('')) },
  {
    weight: 2,
    arbitrary: fc.integer({ min: 0, max: 255 }).map((octet) => `%${octet.toString(16).padStart(2, '0')}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '../../support',
      '../../support/fuzz/',
      '//',
      '%2e',
      '%2F',
      '%5c',
      '%00',
      '%',
      '%zz',
      '%u0041',
      '%c0%af',
    ),
  },
  { weight: 1, arbitrary: fc.integer({ min: 128, max: 255 }).map((octet) => String.fromCharCode(octet)) },
)

/** A request path, similar to a served one or not; as latin1. */
export function paths(served: readonly string[]): fc.Arbitrary<string> {
  const known = fc.constantFrom(...served)
  const text = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''))
  return fc.oneof(
    text.map((rest) => `/${rest}`),
    fc.tuple(known, text).map(([path, rest]) => path + rest),
    fc.tuple(known, fc.nat(60), text).map(([path, at, rest]) => path.slice(0, at) + rest + path.slice(at)),
    fc.tuple(known, fc.nat(60)).map(([path, at]) => encodeAt(path, at)),
    known.map((path) => path.toUpperCase()),
    fc
      .tuple(known, fc.constantFrom('http://localhost', 'HTTPS://a:b@x', 'http:', '//x', '*'))
      .map(([path, host]) => host + path),
    fc.tuple(known, fc.integer({ min: 1, max: 9_000 })).map(([path, times]) => path + '/a'.repeat(times)),
    fc.constantFrom(
      '*',
      '/',
      '//',
      '/.',
      '/..',
      '/%',
      '/payments/pay_',
      `/payments/pay_${'a'.repeat(22)}`,
      '/?',
      '/#',
    ),
  )
}

function encodeAt(path: string, at: number): string {
  const index = at % path.length
  return `${path.slice(0, index)}%${path.charCodeAt(index).toString(16)}${path.slice(index + 1)}`
}

/** One route, with valid values for each of its parameters. */
export interface Target {
  readonly path: string
  /** As written in the catalog. */
  readonly template: string
  readonly parameters: readonly { readonly name: string; readonly fitting: readonly string[] }[]
}

/** The routes of a catalog that have a handler; templates in their paths are filled in. */
export function targetsOf({ routes }: Catalog): Target[] {
  const served = routes.filter(({ operation }) => !operation.planned)
  return served.map(({ path, parameters }) => {
    const known = parameters.map(({ name, example, default: usual, enum: few = [] }) => ({
      name,
      fitting: [example, usual, ...few].flatMap((value) => (value === undefined ? [] : [String(value)])),
    }))
    const filled = known.reduce(
      (text, { name, fitting: [first = 'x'] }) => text.replace(`{${name}}`, first),
      path,
    )
    return { path: filled, template: path, parameters: known }
  })
}

const PLAIN =
  '0 -1 1 1.5 1e3 NaN true null [] {} 00 +1 DE de US,DE US,,DE , XX 2026-11-20 2026-02-30 0000-00-00'
const ODD =
  '% %zz %00 %ff %c3%28 %ed%a0%80 %0d%0aX-Evil:%201 \u202e $.a __proto__ [1,2 $..* (a+)+$ {"a":1e999}'

const values = fc.oneof(
  fc.constantFrom('', ' ', ...PLAIN.split(' ')),
  fc.constantFrom(...ODD.split(' '), '{"a":1}', '{"$ref":"#"}', '{"type":"object"}'),
  fc.bigInt().map(String),
  fc.double().map(String),
  fc.json({ maxDepth: 3 }),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.integer({ min: 1, max: 20_000 }).map((length) => 'a'.repeat(length)),
)

/** A request target with a query for one of the routes; characters outside of URLs are sent as latin1. */
export function queries(targets: readonly Target[]): fc.Arbitrary<string> {
  return fc.constantFrom(...targets).chain(({ path, parameters }) => {
    const name = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('x', ...parameters.map((each) => each.name)) },
      { weight: 1, arbitrary: fc.constantFrom('', '__proto__', 'constructor', 'a[b]', 'a[]', 'country[]') },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 10 }).map(encodeURIComponent) },
    )
    const value = fc.oneof(
      { weight: 4, arbitrary: values.map(encodeURIComponent) },
      { weight: 1, arbitrary: values.map((text) => raw(text)) },
      { weight: 1, arbitrary: fc.constant(CANARY) },
    )
    const strange = fc
      .tuple(name, fc.constantFrom('=', '=', '=', '', '==', '=%3D'), value)
      .map((parts) => parts.join(''))
    const fitting = parameters.flatMap((each) => each.fitting.map((text) => write(each.name, text)))
    const pair = fc.oneof(strange, fc.constantFrom('', ...fitting))
    const separator = fc.constantFrom('&', '&', '&', ';', '&&')
    // The last one of a name counts: most requests have one or two errors, some none.
    const right = parameters.flatMap((each) => each.fitting.slice(0, 1).map((text) => write(each.name, text)))
    const begun = fc.constantFrom([], right)
    return fc
      .tuple(begun, fc.array(pair, { maxLength: 6 }), separator)
      .map(([first, pairs, between]) => `${path}?${[...first, ...pairs].join(between)}`)
  })
}

function write(name: string, value: string): string {
  return `${name}=${encodeURIComponent(value)}`
}

/** As a client writes it that encodes nothing: only characters that would end the request line are removed. */
function raw(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[\0-\x20\x7f]/g, '+')
}

const types = fc.constantFrom(
  'text/html',
  'application/json',
  'application/problem+json',
  '*/*',
  'text/*',
  'x',
  '',
)

/** Values of Accept. */
export const accepts: fc.Arbitrary<string> = fc.oneof(
  fc
    .array(
      fc.tuple(
        types,
        fc.constantFrom('', ';q=0', ';q=1', ';q=0.0001', ';q=NaN', ';q=', ';q="1"', ';level=1;q=.5'),
      ),
      {
        maxLength: 6,
      },
    )
    .map((parts) => parts.map((each) => each.join('')).join(',')),
  fc.uint8Array({ maxLength: 60 }).map(
    (bytes) =>
      `text/html,${Buffer.from(bytes)
        .toString('latin1')
        .replace(/[\r\n\0]/g, ' ')}`,
  ),
  fc.integer({ min: 1, max: 5_000 }).map((times) => 'text/html,'.repeat(times)),
  fc.constantFrom(
    'text/html;'.repeat(3_000),
    `text/html;q=${'0'.repeat(30_000)}`,
    '/'.repeat(30_000),
    ' '.repeat(30_000),
  ),
)
