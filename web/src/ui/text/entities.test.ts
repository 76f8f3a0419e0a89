import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeEntities } from './entities.ts'

test('CV-8 entities are the characters that they name, and what is none stays as it is written', () => {
  assert.equal(
    decodeEntities('a &amp; b &lt;c&gt; &quot;d&quot; &#39;e&#x27; &mdash; &#8217;'),
    `a & b <c> "d" 'e' — ’`,
  )
  assert.equal(
    decodeEntities('&nbsp;&iexcl;&frac34;&Auml;rger, &eacute;t&eacute;, Stra&szlig;e &times; 2, na&iuml;ve, &yuml;'),
    '\u00a0¡¾Ärger, été, Straße × 2, naïve, ÿ',
  )
  // Once: what comes out is not read again.
  assert.equal(decodeEntities('&amp;lt;'), '&lt;')
  for (const text of ['AT&T;', '&unknown;', '&#0;', '&#x202e;', '&#xd800;', '&#9999999;', 'a & b', '&constructor;']) {
    assert.equal(decodeEntities(text), text)
  }
})
