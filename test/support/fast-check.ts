// eslint-disable-next-line no-restricted-imports
import fc from 'fast-check'
import { SEED } from './random.ts'

fc.configureGlobal({ seed: SEED })

/** fast-check with the seed of the run: tests import it from here. */
export { fc }
