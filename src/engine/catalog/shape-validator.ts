import { once } from '../base/once.ts'
import { catalogSchema, type Declared } from './schema.ts'
import { shapeCompiler } from './shape-compiler.ts'

/**
 * The validator of a catalog's JSON Schema. In dist the build replaces this module by the code that ajv generates:
 * generating it takes a tenth of a start.
 */
export const shapeValidator = once(() => shapeCompiler().compile<Declared>(catalogSchema))
