import { Ajv2020 } from 'ajv/dist/2020.js'
import { once } from '../base/once.ts'
import { UNOPTIMIZED } from './schema-compiler.ts'

/** Compiles the JSON Schema of a catalog. */
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
