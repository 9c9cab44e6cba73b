import type { JsonObject } from 'ratecard/handler'
import type { Reply } from '../../../sources/egress/outcome.ts'

/** Name, category, and where it shows: a header with a pattern, or a pattern of the page. */
const SIGNS: readonly (readonly [string, string, string, RegExp])[] = [
  ['Cloudflare', 'cdn', 'cf-ray', /./],
  ['Vercel', 'hosting', 'x-vercel-id', /./],
  ['Netlify', 'hosting', 'x-nf-request-id', /./],
  ['Amazon CloudFront', 'cdn', 'x-amz-cf-id', /./],
  ['Amazon S3', 'hosting', 'server', /AmazonS3/i],
  ['Fastly', 'cdn', 'x-served-by', /cache-/i],
  ['Akamai', 'cdn', 'server', /AkamaiGHost/i],
  ['GitHub Pages', 'hosting', 'server', /GitHub\.com/i],
  ['Google Frontend', 'hosting', 'server', /Google Frontend|^gws/i],
  ['Varnish', 'cache', 'via', /varnish/i],
  ['nginx', 'server', 'server', /^(?:nginx|openresty)/i],
  ['Apache', 'server', 'server', /^Apache/i],
  ['Caddy', 'server', 'server', /^Caddy/i],
  ['LiteSpeed', 'server', 'server', /LiteSpeed/i],
  ['Microsoft IIS', 'server', 'server', /IIS/i],
  ['PHP', 'language', 'x-powered-by', /PHP/i],
  ['ASP.NET', 'framework', 'x-powered-by', /ASP\.NET/i],
  ['Express', 'framework', 'x-powered-by', /Express/i],
  ['Next.js', 'framework', 'x-powered-by', /Next\.js/i],
  ['Shopify', 'shop', 'x-shopify-stage', /./],
  ['Drupal', 'cms', 'x-generator', /Drupal/i],
  ['WordPress', 'cms', 'page', /\/wp-(?:content|includes)\//],
  ['Next.js', 'framework', 'page', /\/_next\/static\//],
  ['Nuxt', 'framework', 'page', /\/_nuxt\//],
  ['Gatsby', 'framework', 'page', /id="___gatsby"/],
  ['SvelteKit', 'framework', 'page', /__sveltekit|data-sveltekit/],
  ['Astro', 'framework', 'page', /<astro-island|\/_astro\//],
  ['Angular', 'framework', 'page', /ng-version="/],
  ['React', 'library', 'page', /data-reactroot/],
  ['jQuery', 'library', 'page', /jquery(?:[.-][\d.]+)?(?:\.min)?\.js/i],
  ['Bootstrap', 'library', 'page', /bootstrap(?:\.bundle)?(?:\.min)?\.(?:js|css)/i],
  ['Shopify', 'shop', 'page', /cdn\.shopify\.com/],
  ['Wix', 'cms', 'page', /static\.wixstatic\.com/],
  ['Squarespace', 'cms', 'page', /static1\.squarespace\.com/],
  ['Webflow', 'cms', 'page', /data-wf-page=/],
  ['Google Analytics', 'analytics', 'page', /googletagmanager\.com\/gtag|google-analytics\.com/],
  ['Google Tag Manager', 'analytics', 'page', /googletagmanager\.com\/gtm\.js/],
  ['Matomo', 'analytics', 'page', /matomo\.js/],
  ['Plausible', 'analytics', 'page', /plausible\.io\/js/],
  ['Stripe', 'payments', 'page', /js\.stripe\.com/],
]

/** What a site is made with, as far as it shows; a hint, for signs can be set by anyone. */
export function recognise({ header }: Reply, page: string, generator: string | null): JsonObject[] {
  const found = new Map<string, JsonObject>()
  if (generator !== null) {
    const name = /^[\p{L}][\p{L}\d .!+-]{0,40}?(?= v?\d|$)/u.exec(generator)?.[0]
    if (name !== undefined) found.set(name, { name, category: 'generator', evidence: 'meta generator' })
  }
  for (const [name, category, where, sign] of SIGNS) {
    const text = where === 'page' ? page : (header(where) ?? '')
    if (found.has(name) || !sign.test(text)) continue
    found.set(name, { name, category, evidence: where === 'page' ? 'page' : `header ${where}` })
  }
  return [...found.values()]
}
