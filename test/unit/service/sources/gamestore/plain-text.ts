import t from 'tap'
import { plainList, plainText } from '../../../../../src/service/sources/gamestore/plain-text.ts'

t.test('removes tags and entities from descriptions', async (t) => {
  t.equal(plainText('Fight &amp; <b>win</b>.'), 'Fight & win.')
  t.equal(plainText('a<br>b\n\n  c'), 'a b c')
  t.equal(plainText('It&#39;s &#x27;on&#x27; &quot;now&quot;&trade;'), `It's 'on' "now"™`)
  t.equal(plainText('&unknown; &amp;lt;'), '&unknown; &lt;', 'read once, not twice')
  t.equal(plainText('a &#0; &#xD800; &#9999999; b'), 'a b', 'no character that text cannot hold')
})

t.test('splits languages and drops the footnote', async (t) => {
  const html =
    'English<strong>*</strong>, Spanish - Spain<br><strong>*</strong>languages with full audio support'
  t.strictSame(plainList(html), ['English', 'Spanish - Spain'])
  t.strictSame(plainList(''), [])
})
