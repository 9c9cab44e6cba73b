import { addressOf } from './directory.ts'
import { defineDocument } from './document.ts'

/** RFC 9309, with where the site map and the resource discovery are, and Cloudflare’s Content-Signal. */
export const robots = defineDocument('robots', (catalog, { baseUrl }) => {
  const { paid, training } = catalog.crawlers
  const signals = ['search=yes', 'ai-input=yes']
  if (training !== undefined) signals.push(`ai-train=${training === 'allow' ? 'yes' : 'no'}`)
  const rules = ['User-agent: *', `Content-Signal: ${signals.join(', ')}`, 'Allow: /']
  // Nothing to read there for those who do not pay.
  if (paid === 'disallow') rules.push('Disallow: /paid/')
  const sitemap = addressOf('sitemap', catalog, baseUrl)
  const ard = addressOf('ard', catalog, baseUrl)
  const pointers = [
    ...(sitemap === undefined ? [] : [`Sitemap: ${sitemap}`]),
    ...(ard === undefined ? [] : [`Agentmap: ${ard}`]),
  ]
  const groups = [rules, pointers].filter((lines) => lines.length > 0)
  return `${groups.map((lines) => lines.join('\n')).join('\n\n')}\n`
})
