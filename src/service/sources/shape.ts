import { Ajv2020, type ErrorObject, type JSONSchemaType } from 'ajv/dist/2020.js'
import { once } from '../../engine/index.ts'

/** Tells whether an answer has the form we read it by. */
export interface Shape<Answer> {
  (answer: unknown): answer is Answer
  /** How the last answer looked at differed. */
  readonly errors?: readonly ErrorObject[] | null
}

// The game store writes some numbers as text, now and then.
const compiler = once(() => new Ajv2020({ allowUnionTypes: true }))

/**
 * Compiles a schema, at the first answer, that is strict about the fields in use and silent about all others. The compiler holds `Answer`
 * and the schema together.
 */
export function compileShape<Answer>(schema: JSONSchemaType<Answer>): Shape<Answer> {
  const compiled = once(() => compiler().compile<Answer>(schema))
  const shape = (answer: unknown): answer is Answer => compiled()(answer)
  return Object.defineProperty(shape, 'errors', { get: () => compiled().errors })
}

/**
 * Where the last answer a shape refused differs from it, in our own words: names of fields, never what stood in them.
 *
 * @example
 * whereItDiffers(ITEMS) // 'response/store_items/#/name: type'
 */
export function whereItDiffers({ errors }: Shape<unknown>): string {
  const [error] = errors ?? []
  if (error === undefined) return 'somewhere'
  // Places in a list and ids are no fields: the same drift is to look the same.
  const path = error.instancePath.replace(/\/\d+(?=\/|$)/g, '/#').slice(1)
  const missing: unknown = error.params['missingProperty']
  const field = typeof missing === 'string' ? [path, missing].filter(Boolean).join('/') : path || 'all of it'
  return `${field}: ${error.keyword}`
}
