from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("calls", "0003_sessions")]

    operations = [
        migrations.RemoveIndex(model_name="streamedcall", name="calls_streamedcall_open"),
        migrations.RemoveField(model_name="streamedcall", name="asked"),
        migrations.AddField(
            model_name="streamedcall",
            name="reply",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.AddIndex(
            model_name="streamedcall",
            index=models.Index(
                condition=~models.Q(request=""),
                fields=["owner"],
                name="calls_streamedcall_open",
            ),
        ),
        migrations.RemoveField(model_name="openquestion", name="attempt"),
        migrations.RemoveField(model_name="openquestion", name="version"),
        migrations.RenameField(
            model_name="openquestion", old_name="params", new_name="message"
        ),
        migrations.AddField(
            model_name="openquestion",
            name="round",
            field=models.BigIntegerField(default=1),
            preserve_default=False,
        ),
    ]
