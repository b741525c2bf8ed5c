import django.core.validators
import django.db.models.deletion
import core.backends.validators
import core.clock
import core.fields
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_organizations_users_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='WeightsRecord',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(help_text='Such as acme/demo-8b@2026-11-01.', max_length=200, unique=True)),
                ('source', models.CharField(help_text='Where the weights come from: a repository or a path.', max_length=300)),
                ('revision', models.CharField(blank=True, help_text='Revision or digest.', max_length=120)),
                ('quantization', models.CharField(blank=True, help_text='Such as awq-int4.', max_length=60)),
                ('tokenizer', models.CharField(blank=True, help_text='Name, or path of a tokenizer.json, for the independent token count. Empty: these weights are not counted.', max_length=300)),
                ('created_at', models.DateTimeField(default=core.clock.now, editable=False)),
            ],
            options={
                'verbose_name': 'weights record',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Backend',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=80, unique=True)),
                ('base_url', models.CharField(help_text='Up to and including /v1, such as http://10.0.0.5:9000/v1.', max_length=300, validators=[core.backends.validators.check_base_url], verbose_name='base URL')),
                ('api_key_env', models.CharField(blank=True, help_text="Name of the environment variable that holds the backend's key. Empty: no key.", max_length=100, validators=[django.core.validators.RegexValidator('\\A([A-Za-z_][A-Za-z0-9_]*)?\\Z', 'Give the name of a variable, not a key.')], verbose_name='API key variable')),
                ('max_concurrency', models.PositiveIntegerField(default=64, help_text='Requests that each worker sends to it at once.', validators=[django.core.validators.MinValueValidator(1)])),
                ('continuous_usage', models.BooleanField(default=False, help_text='It honours stream_options.continuous_usage_stats.')),
                ('enabled', models.BooleanField(default=True)),
                ('first_byte_seconds', models.FloatField(blank=True, help_text='Empty: SVC_BACKEND_FIRST_BYTE_SECONDS.', null=True)),
                ('idle_seconds', models.FloatField(blank=True, help_text='Empty: SVC_BACKEND_IDLE_SECONDS.', null=True)),
                ('total_seconds', models.FloatField(blank=True, help_text='Empty: SVC_BACKEND_TOTAL_SECONDS.', null=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('base_url__regex', '\\Ahttps?://[^/?#@\\s]+(/[^?#@\\s]*)?\\Z')), name='backend_base_url_well_formed', violation_error_message='base_url must be http(s)://host[:port][/path].'), models.CheckConstraint(condition=models.Q(models.Q(('max_concurrency__isnull', True), ('max_concurrency__gt', 0), _connector='OR'), models.Q(('first_byte_seconds__isnull', True), ('first_byte_seconds__gt', 0), _connector='OR'), models.Q(('idle_seconds__isnull', True), ('idle_seconds__gt', 0), _connector='OR'), models.Q(('total_seconds__isnull', True), ('total_seconds__gt', 0), _connector='OR')), name='backend_figures_positive', violation_error_message='These must be above zero: max_concurrency, first_byte_seconds, idle_seconds, total_seconds.')],
            },
        ),
        migrations.CreateModel(
            name='ModelEntry',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('identifier', models.CharField(help_text='What clients send as model. It is for ever once the entry is published.', max_length=200, unique=True, validators=[django.core.validators.RegexValidator('\\A(?=.{1,200}\\Z)[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*\\Z', "Use at most 200 letters, digits, '.', '_', ':', '-' and '/'; begin with a letter or digit, also after each '/'.")])),
                ('context_length', models.PositiveIntegerField(help_text='Tokens of prompt and completion together.', validators=[django.core.validators.MinValueValidator(1)])),
                ('max_request_bytes', models.PositiveIntegerField(help_text='A larger request body is refused with 413.', validators=[django.core.validators.MinValueValidator(1)])),
                ('default_max_output_tokens', models.PositiveIntegerField(help_text='Reserved against the token limit when a request names no cap.', validators=[django.core.validators.MinValueValidator(1)])),
                ('tool_calling', models.BooleanField(default=False)),
                ('structured_output', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=core.clock.now, editable=False)),
                ('published_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('superseded_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('shutdown_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('superseded_by', models.ForeignKey(blank=True, editable=False, limit_choices_to=models.Q(('published_at__isnull', False)), null=True, on_delete=django.db.models.deletion.PROTECT, related_name='predecessors', to='inference.modelentry')),
                ('weights', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='inference.weightsrecord')),
            ],
            options={
                'verbose_name': 'model',
                'ordering': ['identifier'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('identifier__regex', '\\A(?=.{1,200}\\Z)[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*\\Z')), name='entry_identifier_well_formed', violation_error_message="Use at most 200 letters, digits, '.', '_', ':', '-' and '/'; begin with a letter or digit, also after each '/'."),
                    models.CheckConstraint(condition=models.Q(models.Q(('context_length__isnull', True), ('context_length__gt', 0), _connector='OR'), models.Q(('max_request_bytes__isnull', True), ('max_request_bytes__gt', 0), _connector='OR'), models.Q(('default_max_output_tokens__isnull', True), ('default_max_output_tokens__gt', 0), _connector='OR')), name='entry_figures_positive', violation_error_message='These must be above zero: context_length, max_request_bytes, default_max_output_tokens.'),
                    models.CheckConstraint(condition=models.Q(('default_max_output_tokens__lte', models.F('context_length'))), name='entry_default_max_output_fits', violation_error_message='default_max_output_tokens must not be above context_length.'),
                    models.CheckConstraint(condition=models.Q(models.Q(('superseded_at__isnull', True), ('superseded_by__isnull', True)), models.Q(('superseded_at__isnull', False), ('superseded_by__isnull', False)), _connector='OR'), name='entry_superseded_names_successor'),
                    models.CheckConstraint(condition=models.Q(('superseded_at__isnull', True), ('published_at__isnull', False), _connector='OR'), name='entry_superseded_was_published'),
                    models.CheckConstraint(condition=models.Q(('shutdown_at__isnull', True), ('superseded_at__isnull', False), _connector='OR'), name='entry_shutdown_was_superseded'),
                    models.CheckConstraint(condition=models.Q(('superseded_by__isnull', True), models.Q(('superseded_by', models.F('id')), _negated=True), _connector='OR'), name='entry_not_its_own_successor'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Deployment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=200, verbose_name='name on the backend')),
                ('enabled', models.BooleanField(default=True)),
                ('backend', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deployments', to='inference.backend')),
                ('weights', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deployments', to='inference.weightsrecord')),
            ],
            options={
                'ordering': ['weights', 'backend'],
                'constraints': [
                    models.UniqueConstraint(fields=('weights', 'backend'), name='deployment_once'),
                    models.CheckConstraint(condition=models.Q(('model', ''), _negated=True), name='deployment_named'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ModelLimit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('requests_per_minute', models.PositiveIntegerField(blank=True, help_text='Empty: unlimited.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('tokens_per_minute', models.PositiveBigIntegerField(blank=True, help_text='Empty: unlimited.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('entry', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='limits', to='inference.modelentry')),
                ('organization', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='model_limits', to='accounts.organization')),
            ],
            options={
                'ordering': ['entry', 'organization'],
                'constraints': [models.UniqueConstraint(fields=('organization', 'entry'), name='model_limit_once'), models.CheckConstraint(condition=models.Q(models.Q(('requests_per_minute__isnull', True), ('requests_per_minute__gt', 0), _connector='OR'), models.Q(('tokens_per_minute__isnull', True), ('tokens_per_minute__gt', 0), _connector='OR')), name='model_limit_positive', violation_error_message='These must be above zero: requests_per_minute, tokens_per_minute.')],
            },
        ),
        migrations.CreateModel(
            name='Price',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('input_per_mtok', core.fields.PriceField(verbose_name='input per million tokens')),
                ('output_per_mtok', core.fields.PriceField(verbose_name='output per million tokens')),
                ('currency', models.CharField(max_length=3, validators=[django.core.validators.RegexValidator('\\A[A-Z]{3}\\Z', 'Use the three capital letters of ISO 4217, such as USD.')])),
                ('effective_from', models.DateTimeField(help_text='UTC.')),
                ('created_at', models.DateTimeField(default=core.clock.now, editable=False)),
                ('entry', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prices', to='inference.modelentry')),
            ],
            options={
                'ordering': ['entry', 'effective_from'],
                'constraints': [models.UniqueConstraint(fields=('entry', 'effective_from'), name='price_once_per_moment', violation_error_message='There is already a price from this very moment.'), models.CheckConstraint(condition=models.Q(('input_per_mtok__gte', 0), ('output_per_mtok__gte', 0)), name='price_not_negative'), models.CheckConstraint(condition=models.Q(('currency__regex', '\\A[A-Z]{3}\\Z')), name='price_currency_well_formed', violation_error_message='Use the three capital letters of ISO 4217, such as USD.')],
            },
        ),
    ]
