import { Ajv2020, type JSONSchemaType } from 'ajv/dist/2020.js'

/** Tells whether an answer has the form we read it by. */
export type Shape<Answer> = (answer: unknown) => answer is Answer

const ajv = new Ajv2020()

/**
 * Compiles a schema that is strict about the fields in use and silent about all others. The compiler holds `Answer`
 * and the schema together.
 */
export function compileShape<Answer>(schema: JSONSchemaType<Answer>): Shape<Answer> {
  return ajv.compile(schema)
}
