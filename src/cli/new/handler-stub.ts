import { dirname, join, relative } from 'node:path'
import type { Parameter } from '../../engine/catalog/catalog.ts'

/** A handler that is still to be written, and where its files stand. */
export interface Stub {
  /** Name in the catalog: `util/slug`. */
  readonly handler: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  /** File extension of handler and test. */
  readonly ending: 'js' | 'ts'
}

/** Below the folder of handlers. */
export function handlerFile({ handler, ending }: Stub): string {
  return `${handler}.${ending}`
}

export function handlerText(stub: Stub): string {
  const { parameters, handler, path } = stub
  const names = parameters.map(({ name }) => name)
  const given = names.length === 0 ? '' : `{ ${names.join(', ')} }`
  const shown = parameters.map((parameter) =>
    isGiven(parameter) ? parameter.name : `${parameter.name}: ${parameter.name} ?? null`,
  )
  const folder = upwards(handlerFile(stub))
  const purpose = `What is sold at ${path}. For now it returns what it was given.`
  const run = `async (${given}) => ({
  source: [{ name: 'computed' }],
  body: {${shown.length === 0 ? '' : ` ${shown.join(', ')} `}},
})`
  return stub.ending === 'ts'
    ? `import type { Handler } from '${folder}catalog.ts'

/** ${purpose} */
export const ${constantOf(handler)} = (${run}) satisfies Handler<'${handler}'>
`
    : `/**
 * ${purpose}
 *
 * @type {import('${folder}catalog.d.ts').Handler<'${handler}'>}
 */
export const ${constantOf(handler)} = ${run}
`
}

/** A test that calls the handler as buyers do who copy the examples. */
export function testText(stub: Stub, module: string): string {
  const { parameters, handler, path } = stub
  const given = parameters.flatMap(({ name, example, default: preset }) => {
    const value = preset ?? example
    return value === undefined ? [] : [`${name}: ${literal(value)}`]
  })
  const got = parameters.map(
    ({ name, example, default: preset }) => `${name}: ${literal(preset ?? example ?? null)}`,
  )
  const spell = (members: readonly string[]): string =>
    members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  return `import assert from 'node:assert/strict'
import test from 'node:test'
import { ${constantOf(handler)} } from '${module}'

test('a buyer of ${path} gets what the catalog says', async () => {
  const { body } = await ${constantOf(handler)}(${parameters.length === 0 ? '' : spell(given)})
  assert.deepEqual(body, ${spell(got)})
})
`
}

/** How one file names another in an import. */
export function moduleOf(from: string, to: string): string {
  const path = relative(dirname(from), to).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

/** The list of handlers with one more; undefined when the text is not written as `ratecard init` writes it. */
export function withHandler(index: string, stub: Stub): string | undefined {
  const { handler } = stub
  const name = constantOf(handler)
  const list = /^export const handlers = \{\r?\n(?:[ \t].*\r?\n|\r?\n)*(?=\}(?: satisfies .*)?\r?$)/m.exec(
    index,
  )
  if (list === null) return undefined
  const end = list.index + list[0].length
  const entry =
    name === handler ? name : `${/^[A-Za-z_$][\w$]*$/.test(handler) ? handler : literal(handler)}: ${name}`
  const imports = [...index.matchAll(/^import .*\r?\n/gm)].at(-1)
  const head = imports === undefined ? 0 : imports.index + imports[0].length
  const line = `import { ${name} } from './${handlerFile(stub)}'\n`
  return `${index.slice(0, head)}${line}${index.slice(head, end)}  ${entry},\n${index.slice(end)}`
}

export const EMPTY_INDEX = `
/**
 * Every handler by the name the catalog has for it.
 *
 * @satisfies {Partial<import('./catalog.d.ts').Handlers>}
 */
export const handlers = {
}
`

/** `util/market-snapshot` as code names it. */
function constantOf(handler: string): string {
  const name = handler
    .replace(/[^A-Za-z0-9]+(.)?/g, (_, next: string | undefined) => (next ?? '').toUpperCase())
    .replace(/^(?=\d)/, '_')
  return RESERVED.has(name) ? `${name}Route` : name
}

const RESERVED: ReadonlySet<string> = new Set(
  'await break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof var void while with yield handlers'.split(
    ' ',
  ),
)

function isGiven({ required, default: preset }: Parameter): boolean {
  return required || preset !== undefined
}

function upwards(file: string): string {
  return file.includes('/') ? '../'.repeat(file.split('/').length - 1) : './'
}

function literal(value: string | number | boolean | null): string {
  return typeof value === 'string'
    ? `'${value.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n')}'`
    : String(value)
}

/** The test file next to the folder of handlers. `npm test` of a TypeScript project runs the files in `test`. */
export function testFile(folder: string, { handler, ending }: Stub): string {
  const name = ending === 'ts' ? handler.replaceAll('/', '-') : handler
  return join(dirname(folder), 'test', `${name}.test.${ending}`)
}
