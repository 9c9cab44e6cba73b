import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonObject } from '../base/json.ts'

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

/** Whether a text is an existing calendar day from 1970 to 2100. */
export function isDate(text: string): boolean {
  const match = DATE.exec(text)
  if (match === null) return false
  const [, year, month, day] = match.map(Number)
  if (year === undefined || month === undefined || day === undefined || year < 1970 || year > 2100)
    return false
  const date = new Date(Date.UTC(year, month - 1, day))
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}

/** Optimizing takes 40 % of ajv's time, and V8 does it again for code that runs often. */
export const UNOPTIMIZED = { optimize: false } as const

/** For schemas that are generated here; their patterns are checked with the catalog. */
export const compileParameters = renewedCompiler(() => {
  const ajv = new Ajv2020({
    allErrors: true,
    useDefaults: true,
    strict: false,
    validateSchema: false,
    code: UNOPTIMIZED,
  })
  ajv.addFormat('date', isDate)
  return ajv.addKeyword({
    keyword: 'joinedLength',
    type: 'array',
    validate: (limit: number, items: readonly unknown[]) => Array.from(items.join(',')).length <= limit,
  })
})

/** For schemas of operators, whose bodies are not changed: no defaults are filled in. */
export const compileBody = renewedCompiler(
  () => new Ajv2020({ strict: false, validateSchema: false, validateFormats: false, code: UNOPTIMIZED }),
)

/** Schemas that one instance of ajv compiles. */
const LIFETIME = 100

/**
 * Compiles with one instance of ajv after the other: an instance keeps every function it has compiled, and those of former
 * revisions must be freed.
 */
function renewedCompiler(create: () => Ajv2020): (schema: JsonObject) => ValidateFunction {
  let instance: { readonly ajv: Ajv2020; compiled: number } | undefined
  return (schema) => {
    if (instance === undefined || instance.compiled === LIFETIME) instance = { ajv: create(), compiled: 0 }
    instance.compiled += 1
    const validate = instance.ajv.compile(schema)
    // A schema with the same $id may come again.
    instance.ajv.removeSchema(schema)
    return validate
  }
}
