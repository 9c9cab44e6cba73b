import { Ajv2020 } from 'ajv/dist/2020.js'
import { once } from '../base/once.ts'
import { UNOPTIMIZED } from './schema-compiler.ts'
import { catalogSchema, type Declared } from './schema.ts'

/** The build replaces this by the code that ajv generates: generating it takes a tenth of a start. */
export const shapeCompiler = once(
  () =>
    new Ajv2020({
      allErrors: true,
      verbose: true,
      allowUnionTypes: true,
      strict: true,
      strictRequired: false,
      // Tests validate our schema: checking it against the metaschema would cost a tenth of the start.
      validateSchema: false,
      // The build writes the source to a file.
      code: { ...UNOPTIMIZED, source: true, esm: true },
    }),
)

/** The validator of a catalog's JSON Schema. */
export const shapeValidator = once(() => shapeCompiler().compile<Declared>(catalogSchema))
