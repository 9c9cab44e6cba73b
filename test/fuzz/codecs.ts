import t from 'tap'
import { canonicalPath, decodeSegment, splitTarget } from '../../src/engine/http/request-target.ts'
import { compileValidator } from '../../src/engine/catalog/validator.ts'
import type { Route } from '../../src/engine/catalog/catalog.ts'
import { encodeAfter } from '../../src/engine/x402/base64-prefix.ts'
import { readExact } from '../../src/engine/x402/exact-evm/exact-payload.ts'
import { readBase64, readPayload } from '../../src/engine/x402/payload.ts'
import { attempt } from './support/property-run.ts'
import { x402Values } from './support/credentials.ts'
import { paths, queries, targetsOf } from './support/request-targets.ts'
import { encode } from '../support/payment.ts'
import { shippedCatalog } from '../support/shipped-catalog.ts'
import { fc } from '../support/fast-check.ts'

const catalog = shippedCatalog()
const targets = targetsOf(catalog)

function decode(header: string) {
  const decoded = readBase64(header, readPayload)
  return decoded.kind === 'payload' ? readExact(decoded.payload) : decoded
}

const hex = (length: number): fc.Arbitrary<string> =>
  fc.string({
    unit: fc.constantFrom(...'0123456789abcdefABCDEF'.split('')),
    minLength: length,
    maxLength: length,
  })
const number = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map(String)
const address = hex(40).map((digits) => `0x${digits}`)
const payloads = fc.record({
  x402Version: fc.constant(2),
  accepted: fc.record({
    scheme: fc.constant('exact'),
    network: fc.constant('eip155:8453'),
    amount: number,
    asset: address,
    payTo: address,
    maxTimeoutSeconds: fc.nat(),
    extra: fc.record({ name: fc.string(), version: fc.string() }),
  }),
  payload: fc.record({
    signature: hex(130).map((digits) => `0x${digits}`),
    authorization: fc.record({
      from: address,
      to: address,
      value: number,
      validAfter: number,
      validBefore: number,
      nonce: hex(64).map((digits) => `0x${digits}`),
    }),
  }),
})

t.test('reads a right payment as it was signed', (t) =>
  attempt(t, 2, payloads, (payload) => {
    const decoded = decode(encode(payload))
    if (decoded.kind === 'malformed') throw new Error(decoded.detail)
    const lower = (value: unknown): string => JSON.stringify(value).toLowerCase()
    if (lower(decoded.payload) !== lower(payload)) throw new Error(JSON.stringify(decoded.payload))
    return ['read']
  }),
)

const [sampled] = fc.sample(payloads, { numRuns: 1, seed: 1 })

t.test('reads or refuses any header', (t) =>
  attempt(t, 5, x402Values(sampled ?? {}), (header) => {
    const decoded = decode(header)
    return [decoded.kind === 'malformed' ? decoded.code : decoded.kind]
  }),
)

t.test('serves a path in one spelling, for itself and for every proxy before it', (t) => {
  const served = targets.map(({ path }) => path)
  return attempt(t, 4, fc.oneof(paths(served), fc.webPath()), (target) => {
    const { path } = splitTarget(target)
    const canonical = canonicalPath(path)
    if (canonical === undefined) return ['no path']
    if (canonical !== path || canonicalPath(canonical) !== canonical) throw new Error('changed')
    if (new URL(`http://x${canonical}`).pathname !== canonical) throw new Error('another one to URL parsers')
    if (canonical.split('/').some((segment) => decodeSegment(segment) === undefined))
      throw new Error('broken')
    return ['canonical']
  })
})

const validators = new Map(
  targets.flatMap(({ path, template, parameters }) => {
    const values = Object.fromEntries(parameters.map(({ name, fitting: [first = 'x'] }) => [name, first]))
    const routes = catalog.routes.filter((route) => route.path === template)
    return routes.map(
      (route) => [path, { route, values, validate: compileValidator(route, 'ignore') }] as const,
    )
  }),
)
t.test('passes exactly the declared parameters to a handler', (t) =>
  attempt(t, 3, queries(targets), (target) => {
    const mark = target.indexOf('?')
    const known = validators.get(target.slice(0, mark))
    if (known === undefined) throw new Error('no such route')
    const checked = known.validate({ path: known.values, query: target.slice(mark + 1) })
    if (checked.kind === 'invalid') {
      if (checked.errors.length === 0) throw new Error('refused without a reason')
      return ['refused']
    }
    for (const [name, value] of Object.entries(checked.args)) fits(known.route, name, value)
    return ['taken']
  }),
)

function fits({ operation }: Route, name: string, value: unknown): void {
  const parameter = operation.parameters.find((each) => each.name === name)
  if (parameter === undefined) throw new Error(`${name} is not declared`)
  const { type, minimum, maximum, maxLength } = parameter
  if (typeof value === 'number') {
    if (!Number.isFinite(value) || (type === 'integer' && !Number.isInteger(value)))
      throw new Error(`${value}`)
    if (value < (minimum ?? value) || value > (maximum ?? value)) throw new Error(`${value} is out of range`)
  }
  if (typeof value === 'string' && Array.from(value).length > (maxLength ?? Infinity))
    throw new Error(`${name} is too long`)
}

t.test('reads a challenge the same however its parts are joined', (t) => {
  const ascii = fc.string({ unit: 'grapheme-ascii', minLength: 2, maxLength: 20 })
  const beginning = fc.tuple(fc.string({ unit: 'binary' }), ascii).map((parts) => parts.join(''))
  return attempt(t, 1, fc.tuple(beginning, fc.array(ascii, { minLength: 1 })), ([start, ends]) => {
    const encode = encodeAfter(start)
    for (const end of ends)
      if (encode(end) !== Buffer.from(start + end, 'utf8').toString('base64'))
        throw new Error(JSON.stringify([start, end]))
    return ['same']
  })
})
