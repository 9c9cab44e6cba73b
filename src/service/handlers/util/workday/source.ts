import { createRequire } from 'node:module'

const holidaysPackage: { readonly version: string } = createRequire(import.meta.url)(
  'date-holidays/package.json',
)

/** The attribution that CC-BY-3.0 requires. */
export const HOLIDAYS = {
  name: 'date-holidays',
  url: 'https://github.com/commenthol/date-holidays',
  licence: 'CC-BY-3.0',
  version: holidaysPackage.version,
}
