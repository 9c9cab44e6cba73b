import { addressOf } from './directory.ts'
import { defineDocument } from './document.ts'
import { lastChange } from './listing.ts'

/** RFC 9116 §2.5.5 recommends less than a year. */
const VALID_MS = 364 * 86_400_000

/**
 * Whom to tell of a weakness (RFC 9116). It expires 364 days after the catalog was last changed, for documents carry
 * no clock: somebody has to look at it once a year and to date the catalog anew.
 */
export const securityTxt = defineDocument('security-txt', (catalog, { baseUrl }) => {
  const { email, url } = catalog.service.contact
  const expires = new Date(Date.parse(lastChange(catalog)) + VALID_MS).toISOString()
  const canonical = addressOf('security-txt', catalog, baseUrl)
  const lines = [
    ...(email === undefined ? [] : [`Contact: mailto:${email}`]),
    ...(url === undefined ? [] : [`Contact: ${url}`]),
    `Expires: ${expires.replace('.000Z', 'Z')}`,
    'Preferred-Languages: en',
    ...(canonical === undefined ? [] : [`Canonical: ${canonical}`]),
  ]
  return `${lines.join('\n')}\n`
})
